defmodule Mix.Tasks.CallbackThread.Document do
  @shortdoc "Repeats the evaluation of 2018, and also measures memory at rest"

  @moduledoc """
  Repeats the evaluation of "lightweight callback threads" (2018).

      mix callback_thread.document [N ...]

  The task makes three runs for each N:

    * *callback*: the form of the evaluation. A receptor gets N messages
      `{:spawn, fn _tid -> Process.sleep(1000) end}`; only the module of the receptor differs
    * *after*: the same with `{:after, 1000, fun}`, which sleeps without a process
    * *process*: N processes that sleep for 10 s

  Memory is the increase of `:erlang.memory(:total)` since a garbage collection before the start
  of the receptor. The evaluation read it immediately after the last message, when most units were
  queued messages. The task reads it at that time, too, and then after 0.5 s, when all units
  sleep, after 1 s and after 6 s, and when the units have ended and the receptor is stopped. "All
  done" is the time from the first message to the end of the last unit.

  The task takes about two minutes.
  """

  use Mix.Task
  alias CallbackThread.Memory

  @default_counts [100, 1_000, 2_000, 5_000, 10_000]
  @reported %{
    callback: %{
      100 => 76_144,
      1_000 => 881_656,
      2_000 => 1_496_296,
      5_000 => 5_734_120,
      10_000 => 13_004_640
    },
    process: %{
      100 => 358_848,
      1_000 => 2_877_360,
      2_000 => 5_636_232,
      5_000 => 14_160_616,
      10_000 => 28_402_248
    }
  }
  @readings_ms [500, 1_000, 6_000]
  @columns ["form", "N", "reported 2018", "at once", "0.5 s", "1 s", "6 s", "ended", "all done"]
  @widths [8, 6, 13, 12, 12, 12, 12, 12, 10]

  @impl true
  def run(arguments) do
    counts = if arguments == [], do: @default_counts, else: Enum.map(arguments, &count/1)
    Mix.Task.run("app.start")

    IO.puts("bytes by :erlang.memory(:total), more than before the start\n")
    row(@columns)
    # Warm up: the first runs load the code.
    for form <- [:callback, :after, :process], do: measure_apart(form, 10, [0])

    for form <- [:callback, :after, :process], count <- counts do
      row([form, count, @reported[form][count] || "-" | measure_apart(form, count, @readings_ms)])
    end
  end

  defp count(text) do
    case Integer.parse(text) do
      {count, ""} when count >= 1 -> count
      _ -> Mix.raise("N needs to be an integer of at least 1, got: #{text}")
    end
  end

  # Each run has its own process, so that its garbage is not counted in the next run.
  defp measure_apart(form, count, times),
    do: Task.await(Task.async(fn -> measure(form, count, times) end), :infinity)

  defp measure(form, count, times) do
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
    before = :erlang.memory(:total)
    began = now()
    subject = init(form)
    call(form, subject, count)
    at_once = :erlang.memory(:total) - before
    {readings, done} = read({form, subject, count}, before, began, times, [], nil)
    finish(form, subject)
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
    [at_once | readings] ++ [:erlang.memory(:total) - before, "#{done} ms"]
  end

  defp init(:process), do: :erlang.system_info(:process_count)
  defp init(_), do: CallbackThread.Receptor.new()

  defp call(_form, _subject, 0), do: :ok

  defp call(:callback, receptor, count) do
    send(receptor, {:spawn, fn _tid -> Process.sleep(1_000) end})
    call(:callback, receptor, count - 1)
  end

  defp call(:after, receptor, count) do
    send(receptor, {:spawn, fn _tid -> {:after, 1_000, fn -> :done end} end})
    call(:after, receptor, count - 1)
  end

  defp call(:process, subject, count) do
    spawn(fn -> Process.sleep(10_000) end)
    call(:process, subject, count - 1)
  end

  # Reads the memory at the given times, and the clock when all units have ended.
  defp read(_run, _before, _began, [], readings, done) when done != nil,
    do: {Enum.reverse(readings), done}

  defp read(run, before, began, times, readings, done) do
    elapsed = now() - began
    done = done || if(ended?(run, elapsed), do: now() - began)

    case times do
      [time | times] when time <= elapsed ->
        read(run, before, began, times, [:erlang.memory(:total) - before | readings], done)

      _ ->
        Process.sleep(if(elapsed in 990..2_000, do: 1, else: 5))
        read(run, before, began, times, readings, done)
    end
  end

  # Query the receptor only when the units may have ended, so that queries do not disturb the
  # start.
  defp ended?({:process, others, _count}, elapsed) do
    elapsed >= 10_000 and :erlang.system_info(:process_count) <= others
  end

  defp ended?({_, receptor, count}, elapsed) do
    elapsed >= 1_000 and CallbackThread.stats(receptor).ended == count
  end

  defp finish(:process, _), do: :ok
  defp finish(_, receptor), do: CallbackThread.stop(receptor)

  defp row(cells) do
    cells
    |> Enum.zip(@widths)
    |> Enum.map_join("  ", fn {cell, width} -> cell |> text() |> String.pad_leading(width) end)
    |> IO.puts()
  end

  defp text(int) when is_integer(int), do: Memory.digits(int)
  defp text(other), do: to_string(other)
  defp now, do: System.monotonic_time(:millisecond)
end
