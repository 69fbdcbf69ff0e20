# frozen_string_literal: true

# Deterministic inputs: what zstd is given in real life, and what it likes least.
module Corpus
  WORDS = %w[advisory affected version package range fixed severity critical moderate published
             identifier reference vulnerability denial service remote attacker input buffer].freeze

  module_function

  # Lines of JSON, about 4 : 1 at level 3.
  def text(size)
    @text ||= begin
      random = Random.new(42)
      Array.new(12_000) do |id|
        words = Array.new(6) { WORDS[random.rand(WORDS.size)] }.join(" ")
        %({"id":#{id},"score":#{random.rand(1000)},"summary":"#{words}"}\n)
      end.join.b.freeze
    end
    (@text * ((size / @text.bytesize) + 1)).byteslice(0, size)
  end

  def noise(size, seed: 7)
    Random.new(seed).bytes(size)
  end

  # Base64 of noise: nothing matches and every literal is coded, so level 19 works hard for each byte.
  def hard(size)
    [noise(((size * 3) / 4) + 3)].pack("m0").byteslice(0, size).b
  end

  def zeros(size)
    "\0".b * size
  end

  # name => bytes, small and all different in kind.
  def small
    { "empty" => "".b, "one byte" => "a".b, "text" => text(3000), "noise" => noise(700),
      "zeros" => zeros(5000), "every byte" => (0..255).to_a.pack("C*") }
  end
end
