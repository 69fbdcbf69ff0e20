# frozen_string_literal: true

module Zstd
  # What all faults of the codec have in common. A RuntimeError, so that code
  # that rescues what zstd-ruby raises goes on working.
  class Error < RuntimeError
    # @return [Symbol] the kind of fault, one for each class
    def code = :error
  end

  # The input is not zstd data. The message says what it looks like instead.
  class FormatError < Error
    # @return [Symbol] :format
    def code = :format
  end

  # The input is zstd data of a kind that is not read: a frame of the legacy
  # formats v0.1 to v0.7, or one with the reserved header bit set.
  class UnsupportedError < FormatError
    # @return [Symbol] :unsupported
    def code = :unsupported
  end

  # The input ends inside a frame, or is empty (RFC 8878: even empty content
  # is a frame).
  class TruncatedError < Error
    # @return [Symbol] :truncated
    def code = :truncated
  end

  # Bytes that are no frame follow the last frame.
  class TrailingDataError < Error
    # @return [Symbol] :trailing_data
    def code = :trailing_data
  end

  # A frame contradicts itself or the format.
  class CorruptedError < Error
    # @return [Symbol] :corrupted
    def code = :corrupted
  end

  # The content does not match the checksum that its frame carries.
  class ChecksumError < Error
    # @return [Symbol] :checksum
    def code = :checksum
  end

  # A frame wants a larger window than `window_log_max:` allows.
  class WindowLimitError < Error
    # @return [Symbol] :window_limit
    def code = :window_limit
  end

  # The content is larger than `max_output_size:` allows.
  class OutputLimitError < Error
    # @return [Symbol] :output_limit
    def code = :output_limit
  end

  # A frame needs a dictionary that was not given.
  class DictionaryError < Error
    # @return [Symbol] :dictionary
    def code = :dictionary
  end

  # A {Compressor} was given more or fewer bytes than its `pledged_size:`.
  class PledgedSizeError < Error
    # @return [Symbol] :pledged_size
    def code = :pledged_size
  end

  # A stream cannot be used as it is: it is closed or finished, or an earlier
  # call failed or was interrupted. `reset` makes all but a closed one new.
  class StreamError < Error
    # @return [Symbol] :stream
    def code = :stream
  end

  # A stream is in use already, by another thread or by the block of a call
  # that is not over.
  class BusyError < StreamError
    # @return [Symbol] :busy
    def code = :busy
  end
end
