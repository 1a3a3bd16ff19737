defmodule CallbackThread.Clock do
  @moduledoc """
  Ticks of one millisecond on Erlang's monotonic clock, counted from a base.

  Ticks are small positive integers; Erlang's own monotonic time may be negative and needs up to
  64 bits. A due tick is rounded up and the current tick is rounded down, so a timer never fires
  early.
  """

  @ns_per_tick 1_000_000

  @typedoc "A monotonic time in milliseconds from which ticks are counted."
  @type base :: integer()
  @typedoc "Milliseconds after the base; at least 1."
  @type tick :: pos_integer()

  @doc "Returns a base with which the current tick is 1."
  @spec base() :: base()
  def base, do: floor_ms() - 1

  @doc "Returns the current tick, rounded down."
  @spec tick(base()) :: tick()
  def tick(base), do: floor_ms() - base

  @doc """
  Returns the tick at which `ms` milliseconds will have passed; for 0, the current tick.

      iex> base = CallbackThread.Clock.base()
      iex> CallbackThread.Clock.due(base, 50) - CallbackThread.Clock.tick(base) >= 50
      true
  """
  @spec due(base(), non_neg_integer()) :: tick()
  def due(base, 0), do: tick(base)
  def due(base, ms), do: -Integer.floor_div(-now_ns(), @ns_per_tick) - base + ms

  defp floor_ms, do: Integer.floor_div(now_ns(), @ns_per_tick)
  defp now_ns, do: System.monotonic_time(:nanosecond)
end
