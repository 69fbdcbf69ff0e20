# frozen_string_literal: true

module Zstd
  # The version of the gem; {LIBZSTD_VERSION} is that of the codec.
  VERSION = "0.1.0"
end
