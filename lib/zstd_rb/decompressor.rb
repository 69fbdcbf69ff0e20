# frozen_string_literal: true

module Zstd
  # Decodes input that comes in pieces: bytes in, bytes out, no IO (zstd.h,
  # ZSTD_decompressStream). All frames in order, skippable ones skipped; each
  # block is given out as soon as it can be decoded. The work is done without
  # the global lock; an interrupt comes between two blocks.
  #
  # A stream is for one thread at a time: a second one gets {BusyError} at once.
  # After an error or an interrupt in mid-call every call raises {StreamError}
  # until {#reset}.
  #
  # @example
  #   z = Zstd::Decompressor.new
  #   out = +""
  #   Zstd.compress("to be").each_char { |byte| out << z.decompress(byte) }
  #   z.finish # raises if the last frame is not whole
  #   out #=> "to be"
  class Decompressor
    # @param max_output_size [Integer, Float::INFINITY, nil] the most bytes that
    #   all frames together may hold; nil for {Zstd.max_output_size}
    # @param window_log_max [Integer] see {Zstd.decompress}
    # @param single_frame [Boolean] whether to stop after the first frame with
    #   content; {#unused} then has what follows
    # @raise [ArgumentError, TypeError] when an argument is wrong
    def initialize(max_output_size: nil, window_log_max: 27, single_frame: false)
      open_stream(max_output_size, window_log_max, single_frame)
    end

    # Takes input, and gives out the content that can be decoded.
    #
    # Where a frame is faulty the error is raised at once. With `max_output:` or
    # a block, what came before the fault is given out first; {#needs_input?} is
    # then false, and the next call raises.
    #
    # Bytes that are no frame, after a whole one, are no error: they end the
    # data, and {#unused} has them.
    #
    # @param bytes [String, #to_str] the next piece of input, which may be empty
    # @param max_output [Integer, nil] the most bytes to return, at least 1;
    #   input that is not needed for them is kept. Not with a block
    # @param buffer [String, nil] a String to put the result into, which becomes
    #   ASCII-8BIT; not with a block
    # @yieldparam chunk [String] a piece of the content, never empty, of at most
    #   256 KiB; a block that is left early loses nothing: the next call goes on
    # @return [String, nil] ASCII-8BIT; nil with a block
    # @raise [FormatError, UnsupportedError, CorruptedError, ChecksumError,
    #   WindowLimitError, OutputLimitError, DictionaryError] as {Zstd.decompress}
    # @raise [StreamError] when more input comes after the end of the data, or
    #   the stream is closed or failed before
    def decompress(bytes, max_output: nil, buffer: nil, &block)
      return decompress_bytes(bytes, max_output, buffer) unless block_given?

      Zstd.send(:refuse_buffer, buffer)
      raise ArgumentError, "max_output: not with a block, which gets bounded pieces anyway" if max_output

      each_decompressed(bytes, &block)
    end

    # Says that there is no more input, and gives out the rest.
    #
    # @param buffer [String, nil] see {#decompress}
    # @yieldparam chunk [String] see {#decompress}
    # @return [String, nil] ASCII-8BIT; nil with a block
    # @raise [TruncatedError] when the last frame is not whole, or there is none
    # @raise [StreamError] when the stream is closed or failed before
    def finish(buffer: nil, &block)
      return finish_bytes(buffer) unless block_given?

      Zstd.send(:refuse_buffer, buffer)
      each_decompressed("", &block)
      check_end
    end

    # @!method finished?
    #   @return [Boolean] whether the input so far is whole: at least one frame,
    #     and nothing of another
    #   @raise [StreamError] when the stream is closed

    # @!method needs_input?
    #   @return [Boolean] whether a call without input is of no use
    #   @raise [StreamError] when the stream is closed

    # @!method unused
    #   @return [String] the input after the end of the data, ASCII-8BIT
    #   @raise [StreamError] when the stream is closed

    # @!method total_in
    #   @return [Integer] bytes of input decoded

    # @!method total_out
    #   @return [Integer] bytes of content given out

    # @!method reset
    #   Begins anew, with the same limits. All input that was kept is dropped.
    #   @return [nil]
    #   @raise [StreamError] when the stream is closed

    # @!method close
    #   Frees the memory at once. Twice is quiet.
    #   @return [nil]

    # @!method closed?
    #   @return [Boolean]

    # A stream cannot be copied.
    # @raise [TypeError] always
    def initialize_copy(_other)
      raise TypeError, "can't copy #{self.class}"
    end

    # @raise [TypeError] always: use `new`
    def self.allocate
      raise TypeError, "allocator undefined for #{self}"
    end
  end
end
