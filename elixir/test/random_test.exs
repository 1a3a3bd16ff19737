defmodule CallbackThread.RandomTest do
  @moduledoc """
  Compares random threads, messages and cancellations with a simple model.

  Each thread executes a plan, which is a list of steps, and records each step in a table.
  Afterwards, the test checks for every thread that each step ran at most once and after the
  earlier ones, that the received messages are a prefix of the accepted ones, that no timer was
  early, and that the thread ended exactly once, for a reason that the plan and the cancellations
  allow.
  """

  use ExUnit.Case, async: false
  import CallbackThread.Helpers
  alias CallbackThread, as: CT

  @operations 3_000

  for seed <- 1..4 do
    test "seed #{seed}" do
      :rand.seed(:exsss, {unquote(seed), 17, 42})
      receptor = receptor(workers: 1 + rem(unquote(seed), 3), max_inbox: 5, max_waiting: 200)
      {:ok, code} = CT.register(receptor, :step, &__MODULE__.registered_step/2)
      log = :ets.new(:log, [:public, :duplicate_bag])
      :persistent_term.put({__MODULE__, code}, log)

      threads =
        Enum.reduce(1..@operations, %{}, fn i, threads ->
          operate(receptor, code, log, threads, i)
        end)

      threads = cancel_all(threads)
      eventually(fn -> CT.count(receptor) == 0 end)
      for {number, thread} <- threads, do: check(number, thread, log)
      check_stats(receptor, map_size(threads))
    end
  end

  # -- steps --

  defp operate(receptor, code, log, threads, i) do
    case :rand.uniform(10) do
      n when n <= 4 or threads == %{} -> Map.put(threads, i, start(receptor, code, log, i))
      n when n <= 7 -> change(threads, &send_to(&1, i))
      8 -> change(threads, &cancel/1)
      9 -> Process.sleep(:rand.uniform(2) - 1) && threads
      10 -> raw(receptor) && threads
    end
  end

  defp raw(receptor),
    do: Kernel.send(receptor, {:spawn, fn _ -> :rand.uniform(2) == 1 && raise("raw") end})

  defp change(threads, fun) do
    {number, thread} = Enum.random(threads)
    Map.put(threads, number, fun.(thread))
  end

  defp start(receptor, code, log, number) do
    plan = for _ <- 1..:rand.uniform(6), do: random_step(code)
    {:ok, id, ref} = CT.spawn_reply(receptor, fn -> step(log, number, 0, plan, nil) end)
    %{id: id, ref: ref, plan: plan, accepted: [], cancelled: 0}
  end

  defp random_step(code) do
    case :rand.uniform(20) do
      n when n <= 6 -> {:after, :rand.uniform(20) - 1}
      n when n <= 11 -> :receive
      n when n <= 15 -> {:receive, :rand.uniform(10)}
      16 -> :block
      17 -> :crash
      18 -> {:registered, code}
      _ -> :reply
    end
  end

  defp send_to(thread, message) do
    case CT.send(thread.id, message) do
      :ok -> %{thread | accepted: [message | thread.accepted]}
      {:error, reason} when reason in [:full, :no_such_thread] -> thread
    end
  end

  defp cancel(thread) do
    case CT.cancel(thread.id) do
      :ok -> %{thread | cancelled: thread.cancelled + 1}
      {:error, :no_such_thread} -> thread
    end
  end

  defp cancel_all(threads) do
    Process.sleep(50)
    Map.new(threads, fn {number, thread} -> {number, cancel(thread)} end)
  end

  # -- execution of plans --

  defp step(log, number, index, plan, earliest) do
    :ets.insert(log, {{number, index}, earliest == nil or now_us() >= earliest})
    run_plan(plan, log, number, index + 1)
  end

  defp run_plan([], _log, _number, _index), do: {:reply, :finished}
  defp run_plan([:crash | _], _, _, _), do: raise("planned")

  defp run_plan([:block | plan], log, number, index),
    do: Process.sleep(3) && step(log, number, index, plan, nil)

  defp run_plan([:reply | plan], log, number, index),
    do: {:reply, :more, step(log, number, index, plan, nil)}

  defp run_plan([{:after, ms} | plan], log, number, index) do
    earliest = now_us() + 1_000 * ms
    {:after, ms, fn -> step(log, number, index, plan, earliest) end}
  end

  defp run_plan([:receive | plan], log, number, index),
    do: {:receive, handler(log, number, index, plan)}

  defp run_plan([{:receive, ms} | plan], log, number, index) do
    earliest = now_us() + 1_000 * ms

    {:receive, handler(log, number, index, plan), ms,
     fn -> step(log, number, index, plan, earliest) end}
  end

  # The rest of the plan is in the log, because the state of a registered function is only an
  # integer.
  defp run_plan([{:registered, code} | plan], log, number, index) do
    :ets.insert(log, {{:rest, number}, {index, plan}})
    {:after, 1, code, number}
  end

  def registered_step(number, :due) do
    log = :persistent_term.get({__MODULE__, 0})
    {_, {index, plan}} = log |> :ets.lookup({:rest, number}) |> List.last()
    step(log, number, index, plan, nil)
  end

  defp handler(log, number, index, plan) do
    fn message ->
      :ets.insert(log, {{:received, number}, message})
      step(log, number, index, plan, nil)
    end
  end

  defp now_us, do: System.monotonic_time(:microsecond)

  # -- checks --

  defp check(number, thread, log) do
    runs = for index <- 0..length(thread.plan), do: :ets.lookup(log, {number, index})
    assert Enum.all?(runs, &(length(&1) <= 1)), "a step of #{number} ran twice"

    assert Enum.all?(List.flatten(runs), fn {_, in_time} -> in_time end),
           "a timer of #{number} was early"

    ran = Enum.count(runs, &(&1 != []))
    assert Enum.all?(Enum.take(runs, ran), &(&1 != [])), "#{number} left a step out"

    received = for {_, message} <- :ets.lookup(log, {:received, number}), do: message
    assert List.starts_with?(Enum.reverse(thread.accepted), received)

    assert thread.cancelled in 0..1
    check_end(number, final_result(thread.ref), thread, ran)
  end

  defp check_end(_, :finished, %{cancelled: 0, plan: plan}, ran),
    do: assert(ran == length(plan) + 1)

  defp check_end(_, :cancelled, %{cancelled: 1}, _ran), do: :ok

  defp check_end(_, {%RuntimeError{message: "planned"}, _}, %{cancelled: 0, plan: plan}, ran) do
    assert Enum.at(plan, ran - 1) == :crash
  end

  defp check_end(number, reason, thread, ran), do: flunk(inspect({number, reason, thread, ran}))

  # Skips intermediate replies. There must be one final reply or reason, and nothing after it.
  defp final_result(ref) do
    case CT.await(ref, 0) do
      {:ok, :more} -> final_result(ref)
      {:ok, :finished} -> assert_no_further_reply(ref, :finished)
      {:error, reason} when reason != :timeout -> assert_no_further_reply(ref, reason)
    end
  end

  defp assert_no_further_reply(ref, word) do
    assert CT.await(ref, 0) == {:error, :timeout}
    word
  end

  defp check_stats(receptor, monitored) do
    wait_for_stats(receptor, %{chunks: 0, rows: 0, inboxes: 0, watchers: 0, ready: 0, waiting: 0})
    stats = CT.stats(receptor)
    assert stats.spawned == stats.ended + stats.crashed + stats.cancelled
    assert stats.spawned >= monitored
  end
end
