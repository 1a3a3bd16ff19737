ExUnit.start(capture_log: true)

defmodule CallbackThread.Helpers do
  @moduledoc "Functions shared by the tests."
  import ExUnit.Assertions, only: [assert: 1]

  # Long enough for a loaded machine; a passing test never waits this long.
  @timeout_ms 20_000

  def receptor(options \\ []) do
    receptor = CallbackThread.Receptor.new(options)

    ExUnit.Callbacks.on_exit(fn ->
      if Process.alive?(receptor), do: CallbackThread.stop(receptor)
    end)

    receptor
  end

  @doc "Waits until `condition` holds. Fails the test if it does not within `timeout_ms`."
  def eventually(condition, timeout_ms \\ @timeout_ms) do
    deadline = now() + timeout_ms
    poll(condition, deadline)
  end

  defp poll(condition, deadline) do
    cond do
      condition.() -> :ok
      now() > deadline -> ExUnit.Assertions.flunk("it has not come true")
      true -> Process.sleep(2) && poll(condition, deadline)
    end
  end

  @doc """
  Waits until the statistics of a receptor have the `expected` values.

  Statistics are delayed: a thread may have notified its monitors before the worker has removed
  it.
  """
  def wait_for_stats(receptor, expected) do
    keys = Map.keys(expected)
    wanted = fn -> Map.take(CallbackThread.stats(receptor), keys) == expected end
    deadline = now() + @timeout_ms
    poll_stats(wanted, deadline)
    assert Map.take(CallbackThread.stats(receptor), keys) == expected
  end

  defp poll_stats(wanted, deadline) do
    if not wanted.() and now() <= deadline do
      Process.sleep(2)
      poll_stats(wanted, deadline)
    end
  end

  @doc "Waits for `count` messages `{:seen, value}`, and returns the values in order of arrival."
  def collect(count), do: for(_ <- 1..count//1, do: next())

  defp next do
    receive do
      {:seen, value} -> value
    after
      @timeout_ms -> ExUnit.Assertions.flunk("a message is missing")
    end
  end

  @doc "Returns a function that sends `{:seen, value}` to the process that calls `seen_reporter/0`."
  def seen_reporter do
    me = self()
    fn value -> Kernel.send(me, {:seen, value}) end
  end

  def now, do: System.monotonic_time(:millisecond)
end
