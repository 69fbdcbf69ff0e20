# frozen_string_literal: true

# zstd compression that never freezes the process: libzstd works while other
# Ruby threads run, and an interrupt stops it.
#
# The work is done in Rust (ext/zstd_rb/src/module_functions.rs); the keywords
# are Ruby's, which costs no Hash per call.
module Zstd
  # @!parse
  #   # The version of libzstd that is built in, as "1.5.7".
  #   LIBZSTD_VERSION = "1.5.7"
  #   # The level that is used where none is named.
  #   DEFAULT_LEVEL = 3

  # Compresses a String into one frame that names its content size (zstd.h,
  # ZSTD_compress2; RFC 8878, 3.1.1). The bytes are the same on every machine.
  #
  # The work is done without the global lock, in steps of at most one block
  # (128 KiB); an interrupt is delivered between two.
  #
  # @param string [String, #to_str] any encoding, taken as bytes; it may be
  #   changed by other threads meanwhile: what counts is what it was
  # @param level [Integer] one of {levels}; 0 means {DEFAULT_LEVEL}
  # @param checksum [Boolean] whether the frame ends in a checksum (4 bytes
  #   of XXH64) of the content
  # @return [String] ASCII-8BIT, not frozen
  # @raise [ArgumentError] when the level is out of range, or a keyword is
  #   unknown
  # @raise [TypeError] when `string` is not a String
  # @raise [NoMemoryError] when an allocation fails
  # @example
  #   Zstd.compress("to be or not to be " * 100, level: 9).bytesize #=> 37
  def self.compress(string, level: DEFAULT_LEVEL, checksum: false)
    compress_string(string, level, checksum)
  end

  # Decompresses all frames of a String, in order (zstd.h,
  # ZSTD_decompressStream; RFC 8878, 3.1). Skippable frames are skipped.
  #
  # The frames are measured before anything is allocated, and the whole work
  # is done without the global lock, one block (128 KiB) per step; an
  # interrupt is delivered between two.
  #
  # @param string [String, #to_str] zstd data; it may be changed by other
  #   threads meanwhile: what counts is what it was
  # @param max_output_size [Integer, Float::INFINITY, nil] the most bytes of
  #   content to return; nil for {max_output_size}, Float::INFINITY for no
  #   limit at all
  # @param window_log_max [Integer] the largest window that a frame may ask
  #   for, as a power of two: 10 (1 KiB) to 31 (2 GiB); the default is 27
  #   (128 MiB)
  # @return [String] ASCII-8BIT, not frozen
  # @raise [FormatError] when it is not zstd data
  # @raise [UnsupportedError] for legacy frames and reserved bits
  # @raise [TruncatedError] when it ends inside a frame, or is empty
  # @raise [TrailingDataError] when other bytes follow the last frame
  # @raise [CorruptedError] when a frame contradicts itself
  # @raise [ChecksumError] when the content does not match its checksum
  # @raise [WindowLimitError] when a frame asks for a larger window
  # @raise [OutputLimitError] when there is more content; at most one block
  #   over the limit was decoded
  # @raise [DictionaryError] when a frame needs a dictionary
  # @raise [ArgumentError, TypeError] when an argument is wrong
  # @raise [NoMemoryError] when an allocation fails
  # @example
  #   Zstd.decompress(Zstd.compress("hello")) #=> "hello"
  def self.decompress(string, max_output_size: nil, window_log_max: 27)
    decompress_string(string, max_output_size, window_log_max)
  end

  class << self
    # The names that Rails calls a `compressor:` by.
    alias deflate compress
    alias inflate decompress

    private :compress_string, :decompress_string

    private

    # A block gets new Strings: it may keep them.
    def refuse_buffer(buffer)
      raise ArgumentError, "buffer: not with a block, which gets a new String each time" if buffer
    end
  end

  # @!method self.compress_bound(length)
  #   The most bytes that compressing so many bytes can make (zstd.h,
  #   ZSTD_compressBound).
  #
  #   @param length [Integer] bytes
  #   @return [Integer] bytes
  #   @raise [ArgumentError, RangeError] when no input can be that long

  # @!method self.zstd_version
  #   @return [Integer] the version of libzstd as one number, 10507 for 1.5.7

  # @!method self.levels
  #   @return [Range<Integer>] the compression levels: negative ones are fastest,
  #     the largest compresses best

  # @!method self.max_output_size
  #   @return [Integer, nil] the limit for every {decompress} of the process
  #     that names none, in bytes; nil, the default, for no limit

  # @!method self.max_output_size=(bytes)
  #   @param bytes [Integer, nil] see {max_output_size}
  #   @return [Integer, nil]
  #   @raise [ArgumentError] when it is negative
  #   @raise [TypeError] when it is not an Integer

  # @!method self.convoy_guard
  #   Whether small calls may keep the global lock while letting go of it costs
  #   more than they take: beside a thread that is busy in Ruby code, coming
  #   back for the lock takes a whole time slice (100 ms).
  #
  #   @return [Boolean] true unless it was turned off

  # @!method self.convoy_guard=(on)
  #   @param on [Boolean] false to let go of the lock in every call
  #   @return [Boolean]

  # @!method self.huge_pages
  #   @return [Boolean] whether large outputs use transparent huge pages

  # @!method self.huge_pages=(on)
  #   Lets the kernel back large outputs (4 MiB and more) with huge pages, which
  #   makes big decompressions faster. It changes a setting of the whole process
  #   (prctl PR_SET_THP_DISABLE), needs Linux 6.18, and does nothing elsewhere;
  #   {huge_pages} tells whether the kernel agreed.
  #
  #   @param on [Boolean]
  #   @return [Boolean]
end
