# frozen_string_literal: true

# Builds zstd frames by hand (RFC 8878, section 3.1.1), so that a test can choose header fields and
# block layouts that no encoder writes. It shares no code with the gem: it is the second opinion.
module FrameBuilder
  MAGIC = [0xFD2FB528].pack("V").freeze
  BLOCK_MAX = 128 << 10
  UNKNOWN = (2**64) - 1

  # What one block says (type and size field), the bytes that follow, and the content when it is known.
  Block = Struct.new(:type, :size_field, :body, :content)

  module_function

  def raw(bytes)
    Block.new(0, bytes.bytesize, bytes.b, bytes.b)
  end

  def rle(byte, count)
    Block.new(1, count, byte.b, nil)
  end

  def compressed(body, size: body.bytesize)
    Block.new(2, size, body.b, nil)
  end

  # A frame of the given blocks. With `content_size` and no `window_log` it is a single-segment frame.
  # `bits` is OR-ed into the frame header descriptor (reserved bit 0x08, unused bit 0x10).
  def frame(*blocks, content_size: nil, window_log: nil, mantissa: 0, dict_id: nil, dict_id_bytes: nil,
            checksum: nil, bits: 0)
    single = window_log.nil? && !content_size.nil?
    size_flag, size_field = content_size_field(content_size, single)
    id_flag, id_field = dict_id_field(dict_id, dict_id_bytes)
    descriptor = (size_flag << 6) | (single ? 0x20 : 0) | bits | (checksum ? 4 : 0) | id_flag
    out = MAGIC.b << descriptor
    out << ((((window_log || 20) - 10) << 3) | mantissa) unless single
    out << id_field << size_field << body(blocks)
    out << checksum_field(checksum, blocks) if checksum
    out
  end

  def body(blocks)
    blocks.each_with_index.with_object("".b) do |(block, index), out|
      last = index == blocks.size - 1 ? 1 : 0
      header = (block.size_field << 3) | (block.type << 1) | last
      out << [header].pack("V")[0, 3] << block.body
    end
  end

  # 21 bits of block size at most; a longer run of zeros is cut into blocks.
  def zero_blocks(count, block: BLOCK_MAX)
    sizes = Array.new(count / block, block)
    sizes << (count % block) if (count % block).positive? || sizes.empty?
    sizes.map { |size| rle("\0", size) }
  end

  # `count` zeros in RLE blocks, 4 bytes for each 128 KiB: a gigabyte for nothing.
  def zeros(count, declared: true, **options)
    frame(*zero_blocks(count), content_size: (count if declared), window_log: 20, **options)
  end

  def skippable(payload, nibble: 0)
    [0x184D2A50 | nibble, payload.bytesize].pack("VV") << payload.b
  end

  # The same frame without its content size. A single-segment frame gets a window that holds all of it.
  def without_content_size(frame)
    descriptor = frame.getbyte(4)
    single = descriptor.anybits?(0x20)
    size_bytes = [single ? 1 : 0, 2, 4, 8][descriptor >> 6]
    id_bytes = [0, 1, 2, 4][descriptor & 3]
    at = 5 + (single ? 0 : 1)
    window = frame.getbyte(5)
    window = (window_log_for(frame.byteslice(at + id_bytes, size_bytes)) - 10) << 3 if single
    out = MAGIC.b << (descriptor & 0x1F) << window
    out << frame.byteslice(at, id_bytes) << frame.byteslice((at + id_bytes + size_bytes)..)
  end

  def window_log_for(size_field)
    size = size_field.ljust(8, "\0").unpack1("Q<")
    size += 256 if size_field.bytesize == 2
    [10, (size - 1).bit_length].max
  end

  def content_size_field(size, single)
    case size
    when nil then [0, ""]
    when 0..255 then single ? [0, [size].pack("C")] : [2, [size].pack("V")]
    when 256..65_791 then [1, [size - 256].pack("v")]
    when 65_792..0xFFFFFFFF then [2, [size].pack("V")]
    else [3, [size].pack("Q<")]
    end
  end

  def dict_id_field(id, bytes)
    return [0, ""] unless id

    bytes ||= [1, 2, 4].find { |width| id < (1 << (8 * width)) }
    [{ 1 => 1, 2 => 2, 4 => 3 }.fetch(bytes), [id].pack("V")[0, bytes]]
  end

  def checksum_field(checksum, blocks)
    return [checksum].pack("V") if checksum.is_a?(Integer)

    content = blocks.map { |block| block.content || (block.body * block.size_field) }.join
    [xxh64(content) & 0xFFFFFFFF].pack("V")
  end

  PRIMES = [11_400_714_785_074_694_791, 14_029_467_366_897_019_727, 1_609_587_929_392_839_161,
            9_650_029_242_287_828_579, 2_870_177_450_012_600_261].freeze
  MASK = (2**64) - 1

  # XXH64 with seed 0, whose low half is a frame's checksum.
  def xxh64(data)
    p1, p2, _p3, p4, p5 = PRIMES
    hash = data.bytesize < 32 ? p5 : stripes(data)
    hash = (hash + data.bytesize) & MASK
    tail = data.byteslice((data.bytesize & ~31)..)
    words = tail.unpack("Q<*")
    words.each { |word| hash = ((rotate(hash ^ round(0, word), 27) * p1) + p4) & MASK }
    tail = tail.byteslice((words.size * 8)..)
    if tail.bytesize >= 4
      hash = ((rotate(hash ^ ((tail.unpack1("V") * p1) & MASK), 23) * p2) + PRIMES[2]) & MASK
      tail = tail.byteslice(4..)
    end
    tail.each_byte { |byte| hash = (rotate(hash ^ ((byte * p5) & MASK), 11) * p1) & MASK }
    avalanche(hash)
  end

  def stripes(data)
    p1, p2 = PRIMES
    lanes = [(p1 + p2) & MASK, p2, 0, -p1 & MASK]
    data.byteslice(0, data.bytesize & ~31).unpack("Q<*").each_slice(4) do |words|
      lanes = lanes.zip(words).map { |lane, word| round(lane, word) }
    end
    hash = lanes.zip([1, 7, 12, 18]).sum { |lane, bits| rotate(lane, bits) } & MASK
    lanes.inject(hash) { |acc, lane| (((acc ^ round(0, lane)) * p1) + PRIMES[3]) & MASK }
  end

  def round(lane, word)
    (rotate((lane + (word * PRIMES[1])) & MASK, 31) * PRIMES[0]) & MASK
  end

  def rotate(value, bits)
    ((value << bits) | (value >> (64 - bits))) & MASK
  end

  def avalanche(hash)
    hash = ((hash ^ (hash >> 33)) * PRIMES[1]) & MASK
    hash = ((hash ^ (hash >> 29)) * PRIMES[2]) & MASK
    hash ^ (hash >> 32)
  end
end
