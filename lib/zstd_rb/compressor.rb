# frozen_string_literal: true

module Zstd
  # Makes one frame from content that comes in pieces: bytes in, bytes out, no
  # IO (zstd.h, ZSTD_compressStream2). The work is done without the global
  # lock; an interrupt (Timeout, Thread#kill) comes between two blocks.
  #
  # A stream is for one thread at a time: a second one gets {BusyError} at once.
  # After an error or an interrupt in mid-call every call raises {StreamError}
  # until {#reset}.
  #
  # Content that ends before it fills a block (128 KiB) makes the same frame as
  # {Zstd.compress}, its size in the header included.
  #
  # @example
  #   z = Zstd::Compressor.new(level: 9)
  #   out = z.compress("to be or ")
  #   out << z.compress("not to be")
  #   out << z.finish
  #   Zstd.decompress(out) #=> "to be or not to be"
  class Compressor
    # @param level [Integer] one of {Zstd.levels}
    # @param checksum [Boolean] whether the frame ends in a checksum
    # @param pledged_size [Integer, nil] the size of the content in bytes, for
    #   the frame header (RFC 8878, 3.1.1.1.4); it must be kept
    # @raise [ArgumentError, TypeError] when an argument is wrong
    def initialize(level: DEFAULT_LEVEL, checksum: false, pledged_size: nil)
      open_stream(level, checksum, pledged_size)
    end

    # Takes content, and gives out what there is of the frame: often nothing,
    # because libzstd works by blocks.
    #
    # @param bytes [String, #to_str] any encoding, taken as bytes
    # @param buffer [String, nil] a String to put the result into, which becomes
    #   ASCII-8BIT; not with a block
    # @yieldparam chunk [String] a piece of the output, never empty; a block that
    #   is left early leaves the stream unusable until {#reset}
    # @return [String, nil] ASCII-8BIT; nil with a block
    # @raise [StreamError] when the frame is finished, or the stream closed or
    #   failed before
    # @raise [PledgedSizeError] when it is more than was promised
    def compress(bytes, buffer: nil, &block)
      return compress_bytes(bytes, buffer) unless block_given?

      Zstd.send(:refuse_buffer, buffer)
      each_compressed(bytes, &block)
    end

    # Makes all content so far decodable (zstd.h, ZSTD_e_flush). Costs
    # compression when done often.
    #
    # @param buffer [String, nil] see {#compress}
    # @yieldparam chunk [String] see {#compress}
    # @return [String, nil] ASCII-8BIT; nil with a block
    # @raise [StreamError] when the stream is closed or failed before
    def flush(buffer: nil, &block)
      return flush_bytes(false, buffer) unless block_given?

      Zstd.send(:refuse_buffer, buffer)
      each_flushed(false, &block)
    end

    # Ends the frame. Again it does nothing and gives "".
    #
    # @param buffer [String, nil] see {#compress}
    # @yieldparam chunk [String] see {#compress}
    # @return [String, nil] ASCII-8BIT; nil with a block
    # @raise [PledgedSizeError] when it is less than was promised
    # @raise [StreamError] when the stream is closed or failed before
    def finish(buffer: nil, &block)
      return flush_bytes(true, buffer) unless block_given?

      Zstd.send(:refuse_buffer, buffer)
      each_flushed(true, &block)
    end

    # Begins a new frame with the same parameters. What was not given out yet is
    # dropped.
    #
    # @param pledged_size [Integer, nil] see {#initialize}
    # @return [nil]
    # @raise [StreamError] when the stream is closed
    def reset(pledged_size: nil)
      reset_stream(pledged_size)
    end

    # @!method <<(bytes)
    #   Takes content and keeps the output for the next {#compress}, {#flush} or
    #   {#finish}.
    #   @param bytes [String, #to_str]
    #   @return [self]
    #   @raise [StreamError] see {#compress}

    # @!method total_in
    #   @return [Integer] bytes of content taken

    # @!method total_out
    #   @return [Integer] bytes of the frame made

    # @!method finished?
    #   @return [Boolean] whether the frame is whole
    #   @raise [StreamError] when the stream is closed

    # @!method close
    #   Frees the memory at once; does not end the frame. Twice is quiet.
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
