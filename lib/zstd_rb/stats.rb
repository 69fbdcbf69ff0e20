# frozen_string_literal: true

module Zstd
  # What the process has done with the global lock since it was loaded, or
  # since {#reset}: a snapshot, made by {Zstd.stats}.
  #
  # @!attribute [r] calls
  #   @return [Integer] times that work was to be done
  # @!attribute [r] releases
  #   @return [Integer] times that the lock was let go of
  # @!attribute [r] holds
  #   @return [Integer] times that the convoy guard kept it instead
  # @!attribute [r] interrupted
  #   @return [Integer] times that work stopped to look at an interrupt
  # @!attribute [r] wait_total
  #   @return [Float] seconds waited for the lock, after the work was done
  # @!attribute [r] wait_max
  #   @return [Float] the longest of these waits, in seconds
  # @!attribute [r] contexts
  #   @return [Integer] libzstd contexts that exist now
  # @!attribute [r] pooled_contexts
  #   @return [Integer] those of them that wait for the next call
  Stats = Struct.new(
    :calls, :releases, :holds, :interrupted, :wait_total, :wait_max, :contexts, :pooled_contexts
  ) do
    # Sets the counters of the process to zero. This snapshot stays as it is.
    #
    # @return [nil]
    def reset
      Zstd.send(:reset_counters)
    end
  end

  # @return [Stats] the counters as they are now, frozen
  def self.stats
    Stats.new(*counters).freeze
  end

  private_class_method :counters, :reset_counters
end
