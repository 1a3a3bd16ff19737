defmodule CallbackThread.Directory do
  @moduledoc """
  Knows which workers a receptor has, and outlives them.

  The routes stand in a table that callers read themselves, so a spawn costs one message to a worker
  and one back. Who watches a worker's threads stands in a table that belongs to this process, one for
  each worker: when a worker dies, all who wait for its threads are told, and the loss is logged.
  """

  use GenServer
  require Logger

  @table __MODULE__

  @typedoc "Counters of one worker: threads alive (1), raw spawn requests taken (2) and sent to it (3)."
  @type tally :: :atomics.atomics_ref()

  @doc false
  def start_link(_), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)

  @doc "Enters the calling process as a receptor with `count` workers."
  @spec enroll(pos_integer()) :: :ok
  def enroll(count), do: GenServer.call(__MODULE__, {:enroll, self(), count}, :infinity)

  @doc "Enters the calling process as the receptor's worker number `index`; returns its table of watchers."
  @spec join(pid(), non_neg_integer(), tally()) :: :ets.tid()
  def join(receptor, index, tally) do
    GenServer.call(__MODULE__, {:join, self(), receptor, index, tally}, :infinity)
  end

  @doc "The receptor's workers, the one whose turn it is first; `[]` when this node does not know it."
  @spec workers(pid()) :: [pid()]
  def workers(receptor) do
    case :ets.lookup(@table, receptor) do
      [{_, count, turn}] -> rotation(receptor, count, :atomics.add_get(turn, 1, 1))
      [] -> []
    end
  end

  defp rotation(receptor, count, turn) do
    for i <- turn..(turn + count - 1),
        [{_, pid}] <- [:ets.lookup(@table, {receptor, rem(i, count)})],
        do: pid
  end

  @doc "All workers of a receptor, in their fixed order."
  @spec all(pid()) :: [pid()]
  def all(receptor) do
    :ets.select(@table, [{{{receptor, :"$1"}, :"$2"}, [], [{{:"$1", :"$2"}}]}])
    |> Enum.sort()
    |> Enum.map(&elem(&1, 1))
  end

  @impl true
  def init(nil) do
    :ets.new(@table, [:named_table, :set, :protected, read_concurrency: true])
    {:ok, %{}}
  end

  @impl true
  def handle_call({:enroll, receptor, count}, _from, state) do
    :ets.insert(@table, {receptor, count, :atomics.new(1, signed: false)})
    {:reply, :ok, Map.put(state, Process.monitor(receptor), {:receptor, receptor})}
  end

  def handle_call({:join, worker, receptor, index, tally}, _from, state) do
    watchers = :ets.new(:callback_thread_watchers, [:bag, :public])
    # A receptor that has gone leaves no rows behind.
    if :ets.member(@table, receptor), do: :ets.insert(@table, {{receptor, index}, worker})

    {:reply, watchers,
     Map.put(state, Process.monitor(worker), {:worker, worker, watchers, tally})}
  end

  @impl true
  def handle_info({:DOWN, monitor, :process, _pid, reason}, state) do
    {entry, state} = Map.pop(state, monitor)
    gone(entry, reason)
    {:noreply, state}
  end

  def handle_info(_other, state), do: {:noreply, state}

  defp gone({:receptor, receptor}, _reason) do
    :ets.delete(@table, receptor)
    :ets.match_delete(@table, {{receptor, :_}, :_})
  end

  defp gone({:worker, worker, watchers, tally}, reason) do
    for {key, pid, ref, _kind} <- :ets.tab2list(watchers) do
      send(
        pid,
        {:DOWN, ref, :callback_thread, {:callback_thread, worker, key}, {:worker_down, reason}}
      )
    end

    :ets.delete(watchers)
    report(:atomics.get(tally, 1), worker, reason)
  end

  defp gone(nil, _reason), do: :ok

  defp report(0, _worker, _reason), do: :ok

  defp report(alive, worker, reason) do
    level = if shutdown?(reason), do: :info, else: :error

    Logger.log(
      level,
      "#{alive} callback threads ended with their worker #{inspect(worker)}: #{inspect(reason)}"
    )
  end

  defp shutdown?(reason), do: reason in [:normal, :shutdown] or match?({:shutdown, _}, reason)
end
