# frozen_string_literal: true

require "test_helper"

# Ruby lets any thread change a String while another one's call reads it. The call read a snapshot.
class MutationTest < ZstdTest
  MUTATIONS = {
    "clear" => :clear.to_proc, "replace" => ->(s) { s.replace("z" * s.bytesize) },
    "<<" => ->(s) { s << ("tail" * 5000) },
    "setbyte" => ->(s) { 0.step(s.bytesize - 1, 4096) { |i| s.setbyte(i, 0) } },
    "slice!" => ->(s) { s.slice!(0, s.bytesize / 2) }, "insert" => ->(s) { s.insert(0, "x" * 100_000) },
    "reverse!" => :reverse!.to_proc, "freeze" => :freeze.to_proc,
    "force_encoding" => ->(s) { s.force_encoding("UTF-16LE") }
  }.freeze

  # Large enough that every call takes many steps, and releases the lock whatever the guard thinks.
  def original
    @original ||= text(24 * MIB)
  end

  def packed
    @packed ||= Zstd.compress(original, level: 1)
  end

  # Calls in a thread, mutates from here once it is inside, and gives the call's result.
  def result_despite(source, name, mutation, &call)
    input = nil
    thread = Probe.start_inside(name) do
      input = "".b << source # a buffer of its own
      call.call(input)
    end
    mutation.call(input)
    GC.start
    Array.new(20) { "overwrite whatever was freed" * 1000 }
    thread.value
  end

  def test_compress_reads_what_was_there_when_it_was_called
    MUTATIONS.each do |name, mutation|
      result = result_despite(original, "compress", mutation) { |input| Zstd.compress(input, level: 1) }
      assert_bytes packed, result, name
    end
  end

  def test_decompress_reads_what_was_there_when_it_was_called
    # Unknown size and a dense payload: the input is read until the very end.
    source = FrameBuilder.without_content_size(Zstd.compress(noise(24 * MIB)))
    MUTATIONS.each do |name, mutation|
      result = result_despite(source, "decompress", mutation) { |input| Zstd.decompress(input) }
      assert_bytes noise(24 * MIB), result, name
    end
  end

  # A String flipped between two values all the time: the answer is one or the other, never a mixture.
  def test_a_string_replaced_all_the_time_gives_one_of_its_values
    values = [text(300_000), noise(200_000), "tiny"]
    right = values.map { |value| Zstd.compress(value) }
    shared = values.first.dup
    stop = false
    writer = Thread.new { shared.replace(values.sample) until stop }
    200.times { assert_includes right, Zstd.compress(shared) }
  ensure
    stop = true
    writer&.join
  end

  def test_a_string_that_grows_all_the_time_gives_one_of_its_prefixes
    shared = "".b
    stop = false
    writer = Thread.new do
      (shared.bytesize > 400_000 ? shared.clear : shared << "0123456789") until stop
    end
    100.times do
      result = Zstd.decompress(Zstd.compress(shared, level: 1))
      assert_bytes(("0123456789" * ((result.bytesize / 10) + 1)).byteslice(0, result.bytesize), result)
    end
  ensure
    stop = true
    writer&.join
  end

  def test_the_argument_is_not_locked_frozen_or_changed
    input = original.dup
    thread = Probe.start_inside("compress") { Zstd.compress(input, level: 9) }
    input << "still writable"
    thread.join
    refute_predicate input, :frozen?
    assert_bytes "#{original}still writable", input
    input.freeze
    assert_bytes Zstd.compress(input, level: 1), Zstd.compress(input.dup, level: 1)
  end

  def test_one_string_in_eight_threads
    [["mutable", original.byteslice(0, 4 * MIB)], ["frozen", original.byteslice(0, 4 * MIB).freeze],
     ["tiny", "tiny".dup]].each do |kind, input|
      right = Zstd.compress(input, level: 1)
      threads = Array.new(8) do
        Thread.new { Array.new(4) { Zstd.compress(input, level: 1) == right && Zstd.decompress(right) == input } }
      end
      assert_equal [true], threads.flat_map(&:value).uniq, kind
    end
  end

  def test_an_input_that_nobody_holds_any_more_lives_until_the_call_ends
    same = lambda { |seed|
      Zstd.decompress(Zstd.compress(Corpus.noise(3 * MIB, seed:))) == Corpus.noise(3 * MIB, seed:)
    }
    threads = Array.new(4) { |seed| Thread.new { same[seed] } }
    GC.start while threads.any? { |thread| thread.join(0.001).nil? }
    assert threads.all?(&:value)
  end

  # While a String is locked, IO or an IO::Buffer may write into it without the lock of Ruby.
  def test_a_locked_input_is_read_as_it_was
    skip "this Ruby has no IO::Buffer" unless defined?(IO::Buffer) && IO::Buffer.respond_to?(:for)
    string = text(2 * MIB)
    results = []
    worker = nil
    IO::Buffer.for(string) do |buffer|
      skip "this Ruby does not lock the String" if buffer.readonly?
      worker = Thread.new { 5.times { results << Zstd.compress(string, level: 9, checksum: true) } }
      round = 0
      buffer.set_string("#{round += 1} " * 20_000, (round * 7919) % MIB) while worker.alive?
    end
    skip "this Ruby's IO::Buffer.for takes no block" if worker.nil?
    assert_equal 5, results.size
    results.each { |packed| assert_equal 2 * MIB, Zstd.decompress(packed).bytesize }
  end
end
