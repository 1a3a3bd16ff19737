defmodule Mix.Tasks.CallbackThread.Million do
  @shortdoc "Measures memory before, during and after a million simultaneous waits"

  @moduledoc """
  Measures the memory of a million units that wait at the same time.

      mix callback_thread.million [N] [--only registered|closures] [--wait SECONDS]

  The task measures both kinds of storage, each in a separate BEAM, because the second would reuse
  memory of the first. It starts the units in five steps. After each step, it waits until all units
  wait, counts them, and reads the PSS of the BEAM's operating system process from
  `/proc/self/smaps_rollup`. The memory of one unit is the slope of the line through these
  readings, which excludes the memory of the program itself. All units fall due at the same time,
  `--wait` seconds after the start, by default 10 s and 1 s more for every 50,000 units. N is a
  million by default. Each unit has its own counter, which proves that the unit was completed
  exactly once. The memory of the counters is part of the reading "before".

  If units fall due before all of them wait, the task fails and asks for a longer `--wait`. A BEAM
  that the task starts ends with the task, even if the task is killed.
  """

  use Mix.Task
  alias CallbackThread.Memory

  @steps [0.1, 0.25, 0.5, 0.75, 1.0]
  @counters {__MODULE__, :counters}
  # Time without a completed unit after which the task gives up, in milliseconds.
  @stuck_ms 60_000
  # Passes the parent's pipe to a BEAM as descriptor 3, because the BEAM reads descriptor 0
  # itself. EOF on the pipe means that the parent has ended.
  @with_parent ~S(exec "$0" "$@" 3<&0 </dev/null)

  @impl true
  def run(arguments) do
    strict = [only: :string, wait: :integer, end_with_parent: :boolean]
    {options, rest} = OptionParser.parse!(arguments, strict: strict)
    if options[:end_with_parent], do: end_with_parent()
    units = rest |> List.first("1000000") |> count()
    wait = Keyword.get(options, :wait, 10 + div(units, 50_000))

    case options[:only] do
      nil -> Enum.each(["registered", "closures"], &in_own_beam(&1, units, wait))
      kind when kind in ["registered", "closures"] -> measure(kind, units, wait)
      other -> Mix.raise("--only: needs registered or closures, got: #{other}")
    end
  end

  # With fewer than ten units, there would not be five different steps.
  defp count(text) do
    case Integer.parse(String.replace(text, "_", "")) do
      {count, ""} when count >= 10 -> count
      _ -> Mix.raise("the number of units needs to be an integer of at least 10, got: #{text}")
    end
  end

  defp in_own_beam(kind, units, wait) do
    task = ["mix", "callback_thread.million", "#{units}", "--only", kind, "--wait", "#{wait}"]
    arguments = ["-c", @with_parent | task] ++ ["--end-with-parent"]
    {_, status} = System.cmd("sh", arguments, into: IO.stream())
    if status != 0, do: Mix.raise("#{kind}: failed")
  end

  # Ends this BEAM when its parent has ended, even by SIGKILL: the kernel then closes the pipe.
  defp end_with_parent do
    spawn(fn ->
      port = Port.open({:fd, 3, 3}, [:in, :eof])

      receive do
        {^port, :eof} -> System.halt(1)
      end
    end)
  end

  defp measure(kind, units, wait) do
    Mix.Task.run("app.start")
    counters = :counters.new(units, [])
    Enum.each(1..units, &:counters.put(counters, &1, 0))
    :persistent_term.put(@counters, counters)
    receptor = CallbackThread.Receptor.new()

    try do
      measure(kind, units, wait, receptor, counters)
    after
      if Process.alive?(receptor), do: CallbackThread.stop(receptor)
    end
  end

  defp measure(kind, units, wait, receptor, counters) do
    start = starter(kind, receptor)
    Process.sleep(200)
    :erlang.garbage_collect()

    due = now() + 1_000 * wait
    before = Memory.pss()
    points = grow(units, start, receptor, counters, due)
    print_growth(kind, before, points)
    print_end(receptor, counters, units, due, before)
  end

  @doc false
  def hit(i), do: :counters.add(:persistent_term.get(@counters), i, 1)

  # Returns a function that starts the units with the given numbers, which fall due at `due`.
  defp starter("registered", receptor) do
    {:ok, code} = CallbackThread.register(receptor, &__MODULE__.hit/1)

    fn numbers, due ->
      CallbackThread.spawn_registered_many(receptor, code, numbers, after: max(0, due - now()))
    end
  end

  defp starter("closures", receptor) do
    fn numbers, due ->
      # The results are discarded: a list of a million of them would count as memory.
      Enum.each(numbers, fn i ->
        {:ok, _} =
          CallbackThread.spawn(receptor, fn -> {:after, max(0, due - now()), fn -> hit(i) end} end)
      end)
    end
  end

  defp grow(units, start, receptor, counters, due) do
    steps = Enum.map(@steps, &round(&1 * units))

    for {from, to} <- Enum.zip([0 | steps], steps) do
      start.((from + 1)..to//1, due)

      wait_until(
        fn -> match?(%{alive: ^to, ready: 0, runners: 0}, CallbackThread.stats(receptor)) end,
        fn -> if now() >= due, do: too_early() end
      )

      :erlang.garbage_collect()
      # Workers collect their garbage a moment after becoming idle.
      Process.sleep(300)
      pss = Memory.pss()
      stats = CallbackThread.stats(receptor)

      all_wait =
        stats.alive == to and stats.ready == 0 and :counters.get(counters, 1) == 0 and now() < due

      unless all_wait, do: too_early()
      {to, pss, stats}
    end
  end

  defp too_early, do: Mix.raise("they did not all wait at the same time: use a longer --wait")

  defp print_growth(kind, before, points) do
    IO.puts("\n#{kind}")
    line("before", 0, before, "")

    for {count, pss, stats} <- points do
      line(
        "waiting",
        count,
        pss,
        "#{digits(stats.chunks)} chunks, #{digits(stats.rows)} rows in ETS"
      )
    end

    slope = Memory.slope(for {count, pss, _} <- points, do: {count, pss})
    IO.puts("#{Float.round(slope, 1)} bytes of PSS for each waiting unit (slope)")
  end

  defp print_end(receptor, counters, units, due, before) do
    wait_for_the_end(receptor, units, now() + @stuck_ms)
    late = now() - due
    once = Enum.count(1..units, &(:counters.get(counters, &1) == 1))
    Process.sleep(1_000)
    stats = CallbackThread.stats(receptor)

    line(
      "after",
      0,
      Memory.pss(),
      "#{digits(stats.chunks)} chunks, #{digits(stats.rows)} rows in ETS"
    )

    CallbackThread.stop(receptor)

    IO.puts(
      "#{digits(once)} of #{digits(units)} completed exactly once; the last #{digits(late)} ms after they were due"
    )

    IO.puts(
      "#{digits(Memory.pss() - before)} bytes of PSS more than before, without the receptor"
    )

    if once != units, do: Mix.raise("not every unit was completed exactly once")
  end

  defp line(when_read, units, pss, rest) do
    count = String.pad_leading(digits(units), 11)
    mb = :erlang.float_to_binary(pss / 1.0e6, decimals: 1)

    IO.puts(
      "#{String.pad_trailing(when_read, 8)}#{count} units  PSS #{String.pad_leading(mb, 7)} MB  #{rest}"
    )
  end

  # Waits until `condition` holds, unless `give_up` raises.
  defp wait_until(condition, give_up) do
    unless condition.() do
      give_up.()
      Process.sleep(20)
      wait_until(condition, give_up)
    end
  end

  # Waits until no unit is left. Raises if their number stays the same until the deadline.
  defp wait_for_the_end(receptor, before, deadline) do
    count = CallbackThread.count(receptor)

    cond do
      count == 0 ->
        :ok

      count == before and now() > deadline ->
        Mix.raise("#{digits(count)} units were due and have not ended")

      true ->
        Process.sleep(20)
        deadline = if count == before, do: deadline, else: now() + @stuck_ms
        wait_for_the_end(receptor, count, deadline)
    end
  end

  defp digits(int), do: Memory.digits(int)
  defp now, do: System.monotonic_time(:millisecond)
end
