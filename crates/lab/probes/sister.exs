# A probe for the callback threads of ../../../elixir; README.md describes the protocol.
#
#     elixirc -o DIR ../../../elixir/lib/callback_thread.ex ../../../elixir/lib/callback_thread/*.ex
#     elixir --erl "+sbwt none +sbwtdcpu none +sbwtdio none" -pa DIR sister.exs UNIT
#
# UNIT is `registered` or `closure`, the two ways in which the library stores a unit. Both wait for timers: to wake
# them by messages, the probe would have to keep their ids. +sbwt and related options keep idle schedulers from
# spinning.

defmodule Probe.Count do
  # The counters are a persistent term, so that units hold no reference to them.
  def init, do: :persistent_term.put(__MODULE__, :counters.new(2, []))
  def reset, do: Enum.each([1, 2], &:counters.put(counters(), &1, 0))
  def add(counter), do: :counters.add(counters(), index(counter), 1)
  def get(counter), do: :counters.get(counters(), index(counter))

  defp index(:waiting), do: 1
  defp index(:ended), do: 2
  defp counters, do: :persistent_term.get(__MODULE__)
end

defmodule Probe.Registered do
  # A unit that is a registered function and an integer. The library creates up to 4,096 units with one message.
  @bulk 4_096

  def init(receptor) do
    {:ok, ended} = CallbackThread.register(receptor, &__MODULE__.ended/1)
    {:ok, back} = CallbackThread.register(receptor, &__MODULE__.back/2)
    %{receptor: receptor, ended: ended, back: back}
  end

  # A delay counts from its request, so the rest of the time until `due` is computed anew for each message.
  def make(state, n, due) do
    for first <- 1..n//@bulk do
      ms = max(0, due - System.monotonic_time(:millisecond))

      {:ok, _} =
        CallbackThread.spawn_registered_many(state.receptor, state.ended, first..min(n, first + @bulk - 1), after: ms)
    end
  end

  # The unit runs no code before it waits, so the library's count is used.
  def waiting(stats), do: stats.alive - stats.ready

  def echo(state), do: CallbackThread.spawn_registered(state.receptor, state.back, 0, after: :infinity)

  def ended(_number), do: Probe.Count.add(:ended)

  def back(number, {:message, {driver, message}}) do
    send(driver, {:back, message})
    {:receive, number}
  end
end

defmodule Probe.Closure do
  # A unit that is a closure over one number. Without a captured value the function would be a constant.
  def init(receptor), do: %{receptor: receptor}

  def make(state, n, due) do
    Enum.each(1..n//1, fn number ->
      {:ok, _} =
        CallbackThread.spawn(state.receptor, fn ->
          Probe.Count.add(:waiting)
          {:after, max(0, due - System.monotonic_time(:millisecond)), fn -> ended(number) end}
        end)
    end)
  end

  def waiting(_stats), do: Probe.Count.get(:waiting)

  def echo(state), do: CallbackThread.spawn(state.receptor, fn -> {:receive, &__MODULE__.back/1} end)

  def ended(_number), do: Probe.Count.add(:ended)

  def back({driver, message}) do
    send(driver, {:back, message})
    {:receive, &__MODULE__.back/1}
  end
end

defmodule Probe do
  @units %{"registered" => Probe.Registered, "closure" => Probe.Closure}
  # Time in milliseconds that the library's idle workers may take to collect their garbage.
  @idle_ms 300

  def main([name]) when is_map_key(@units, name) do
    log_to_stderr()
    {:ok, _} = CallbackThread.Application.start(:normal, [])
    Probe.Count.init()
    unit = @units[name]
    state = unit.init(CallbackThread.Receptor.new())
    warm_up(unit, state)
    IO.puts("ready Elixir #{System.version()} on OTP #{System.otp_release()}")
    serve(unit, state, nil)
    System.halt(0)
  end

  def main(_), do: raise(ArgumentError, "one argument is needed: " <> Enum.join(Map.keys(@units), " or "))

  defp warm_up(unit, state) do
    {_, units} = park(unit, state, 100, 50)
    end_all(state, units)
    trips(unit, state, 100)
    # Frees the garbage from compiling this file.
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
  end

  defp serve(unit, state, units) do
    case IO.gets("") do
      :eof -> :ok
      line -> serve(unit, state, command(String.split(line), unit, state, units))
    end
  end

  defp command(["park", n, hold], unit, state, nil) do
    {ns, units} = park(unit, state, String.to_integer(n), String.to_integer(hold))
    waiting = unit.waiting(CallbackThread.stats(state.receptor))
    Process.sleep(@idle_ms)
    IO.puts("parked #{waiting} #{ns} #{bytes()}")
    units
  end

  defp command(["wake"], _unit, state, units) do
    early = Probe.Count.get(:ended)
    ns = end_all(state, units)
    IO.puts("woken #{early} #{Probe.Count.get(:ended)} #{ns}")
    nil
  end

  defp command(["rest"], _unit, _state, units) do
    Process.sleep(@idle_ms)
    IO.puts("rested #{bytes()}")
    units
  end

  defp command(["trips", m], unit, state, units) do
    IO.puts("trips #{m} #{trips(unit, state, String.to_integer(m))}")
    units
  end

  defp park(unit, state, n, hold) do
    due = System.monotonic_time(:millisecond) + hold
    Probe.Count.reset()

    ns =
      timed(fn ->
        unit.make(state, n, due)
        await(state, &(&1.ready == 0 and &1.runners == 0 and &1.alive + Probe.Count.get(:ended) == n))
      end)

    {ns, due}
  end

  defp end_all(state, due) do
    timed(fn ->
      Process.sleep(max(0, due - System.monotonic_time(:millisecond)))
      await(state, &(&1.alive == 0))
    end)
  end

  # Waits until the library's statistics meet the condition. Polls only every millisecond, since the workers have to
  # answer.
  defp await(state, condition) do
    unless condition.(CallbackThread.stats(state.receptor)) do
      Process.sleep(1)
      await(state, condition)
    end
  end

  defp trips(unit, state, m) do
    {:ok, id} = unit.echo(state)
    ns = timed(fn -> Enum.each(1..m//1, &trip(id, &1)) end)
    CallbackThread.cancel(id)
    ns
  end

  # Sends a message to the unit and receives its answer. `CallbackThread.send/2` would also wait for a reply of the
  # worker.
  defp trip(id, message) do
    CallbackThread.cast(id, {self(), message})

    receive do
      {:back, ^message} -> :ok
      {:back, answer} -> raise("message #{message} was answered by #{answer}")
    end
  end

  defp timed(fun) do
    start = System.monotonic_time(:nanosecond)
    fun.()
    System.monotonic_time(:nanosecond) - start
  end

  defp bytes do
    :erlang.garbage_collect()
    :erlang.memory(:total)
  end

  # The default log handler writes to standard output.
  defp log_to_stderr do
    Enum.each(:logger.get_handler_ids(), &:logger.remove_handler/1)
    :ok = :logger.add_handler(:default, :logger_std_h, %{level: :warning, config: %{type: :standard_error}})
  end
end

Probe.main(System.argv())
