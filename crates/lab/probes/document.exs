# Repeats the evaluation of "lightweight callback threads" (2018), as a probe with a protocol of its own, because
# units of the original scheme do not all wait at the same time.
#
#     elixir -pa DIR document.exs FORM
#
# FORM is `callback` (the scheme of 2018), `process` (plain processes), or `sister` (../../../elixir, whose compiled
# files are in DIR). As in 2018, functions sleep for 1 s in callbacks and for 10 s in processes.
#
# The probe writes `ready VERSION` once it has started. It answers each line `evaluate N`, which asks for N functions,
# with a line
#
#     evaluated AT_ONCE AFTER_1S AFTER_6S BEGUN_AT_ONCE BEGUN_6S LEFT
#
# AT_ONCE, AFTER_1S, AFTER_6S: growth of `:erlang.memory(:total)` in bytes, from before the first function until all
# have been sent or spawned (which is when the evaluation of 2018 read it), and until 1 s and 6 s later.
# BEGUN_AT_ONCE, BEGUN_6S: number of functions that had started to run at the first and the last of these times. LEFT:
# growth in bytes after everything has been stopped and garbage has been collected.

defmodule Scheme do
  # The scheme of 2018, rewritten with the same structure and with those defects that affect the evaluation.

  defmodule Worker do
    def worker(receptor), do: worker(receptor, %{queue: [], threads: %{}, next_tid: 0})

    # Messages are received before queued functions run, so no function runs while more arrive.
    def worker(receptor, env) do
      receive do
        {:spawn, func} -> worker(receptor, report(receptor, spawn(env, func)))
      after
        0 -> worker(receptor, run(receptor, env))
      end
    end

    # Appending copies the queue, so N functions take O(N^2) steps. Threads are never removed from `threads`.
    defp spawn(%{queue: queue, threads: threads, next_tid: tid}, func) do
      %{queue: queue ++ [{:thread, tid, func}], threads: Map.put(threads, tid, & &1), next_tid: tid + 1}
    end

    defp run(_receptor, %{queue: []} = env) do
      Process.sleep(10)
      env
    end

    # The only worker runs the function itself: a sleeping function delays all others, and a crashing one ends the
    # worker and with it all threads.
    defp run(receptor, %{queue: [{:thread, tid, func} | queue]} = env) do
      env = report(receptor, %{env | queue: queue})
      func.(tid)
      env
    end

    # Each change copies the worker's whole state to the receptor: most of the memory in use while nothing runs.
    defp report(receptor, env) do
      send(receptor, {:queue, env})
      env
    end
  end

  defmodule Receptor do
    def new, do: spawn(__MODULE__, :receptor, [])

    # The receptor does not monitor the worker: once the worker is dead, functions sent to it are lost silently.
    def receptor, do: receptor(spawn(Worker, :worker, [self()]), nil)

    def receptor(worker, env) do
      receive do
        {:queue, new_env} ->
          receptor(worker, new_env)

        {:spawn, func} ->
          send(worker, {:spawn, func})
          receptor(worker, env)
      end
    end
  end
end

defmodule Evaluation do
  @compile {:no_warn_undefined, [CallbackThread, CallbackThread.Application, CallbackThread.Receptor]}

  @forms ["callback", "process", "sister"]
  @readings_ms [1_000, 6_000]

  def main([form]) when form in @forms do
    log_to_stderr()
    if form == "sister", do: {:ok, _} = CallbackThread.Application.start(:normal, [])
    # The counter is a persistent term, so that the functions capture nothing, like those of 2018.
    :persistent_term.put(__MODULE__, :atomics.new(1, []))
    evaluate(form, 10, [0, 0])
    IO.puts("ready Elixir #{System.version()} on OTP #{System.otp_release()}")
    serve(form)
    System.halt(0)
  end

  def main(_), do: raise(ArgumentError, "one argument is needed: #{Enum.join(@forms, ", ")}")

  defp serve(form) do
    case IO.gets("") do
      :eof ->
        :ok

      line ->
        ["evaluate", n] = String.split(line)
        IO.puts("evaluated #{form |> evaluate(String.to_integer(n), @readings_ms) |> Enum.join(" ")}")
        serve(form)
    end
  end

  # -- the forms --

  defp init("callback"), do: Scheme.Receptor.new()
  defp init("process"), do: nil
  defp init("sister"), do: CallbackThread.Receptor.new()

  # The recursion builds an unused list, and each call needs stack. The measurements of 2018 include both.
  defp call(_form, _subject, number) when number <= 0, do: []

  defp call("process", subject, number) do
    spawn(fn -> sleep(10_000) end)
    [number | call("process", subject, number - 1)]
  end

  defp call(form, receptor, number) do
    send(receptor, {:spawn, fn _tid -> sleep(1_000) end})
    [number | call(form, receptor, number - 1)]
  end

  defp stop("sister", receptor), do: CallbackThread.stop(receptor)
  # `evaluate` kills the processes of the other forms.
  defp stop(_form, _subject), do: :ok

  defp sleep(ms) do
    :atomics.add(:persistent_term.get(__MODULE__), 1, 1)
    Process.sleep(ms)
  end

  defp begun, do: :atomics.get(:persistent_term.get(__MODULE__), 1)

  # -- one evaluation --

  defp evaluate(form, number, readings) do
    others = Process.list()
    # The measurement runs in its own process, whose garbage is freed when it ends.
    {before, figures} = fn -> measure(form, number, readings) end |> Task.async() |> Task.await(:infinity)
    Enum.each(Process.list() -- others, &kill/1)
    collect_garbage()
    figures ++ [:erlang.memory(:total) - before]
  end

  defp measure(form, number, [first, second]) do
    :atomics.put(:persistent_term.get(__MODULE__), 1, 0)
    collect_garbage()
    before = :erlang.memory(:total)
    subject = init(form)
    call(form, subject, number)
    at_once = :erlang.memory(:total)
    begun_at_once = begun()
    # Frees the list that `call` has returned.
    :erlang.garbage_collect()
    Process.sleep(first)
    after_first = :erlang.memory(:total)
    Process.sleep(second - first)
    after_second = :erlang.memory(:total)
    begun_at_last = begun()
    stop(form, subject)
    {before, [at_once - before, after_first - before, after_second - before, begun_at_once, begun_at_last]}
  end

  defp kill(pid) do
    monitor = Process.monitor(pid)
    Process.exit(pid, :kill)

    receive do
      {:DOWN, ^monitor, :process, _, _} -> :ok
    end
  end

  defp collect_garbage do
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
    # Memory of ended processes is freed with a delay.
    Process.sleep(200)
  end

  # The default log handler writes to standard output.
  defp log_to_stderr do
    Enum.each(:logger.get_handler_ids(), &:logger.remove_handler/1)
    :ok = :logger.add_handler(:default, :logger_std_h, %{level: :warning, config: %{type: :standard_error}})
  end
end

Evaluation.main(System.argv())
