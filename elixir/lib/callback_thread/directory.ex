defmodule CallbackThread.Directory do
  @moduledoc """
  Keeps the list of each receptor's workers, and outlives the workers.

  Callers read the lists from a table, so a spawn costs one message to a worker and one back. The
  directory also owns a table for each worker with the watchers of its threads. When a worker
  dies, the directory notifies these watchers, and logs the loss.
  """

  use GenServer
  require Logger

  alias CallbackThread.Watchers

  @table __MODULE__
  # 100 attempts with pauses of 10 ms take one second.
  @max_attempts 100
  @pause_ms 10

  @typedoc """
  Counters of one worker: living threads (1), raw spawn requests that it has received (2), and
  those sent to it (3).
  """
  @type tally :: :atomics.atomics_ref()

  @doc false
  def start_link(_), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)

  @doc """
  Registers the calling process as a receptor with `count` workers, and returns a monitor of the
  directory: if the directory ends, the receptor has neither routes nor watchers. Waits up to a
  second for a directory that is restarting, and then returns `{:error, :no_directory}`.
  """
  @spec enroll(pos_integer()) :: {:ok, monitor :: reference()} | {:error, :no_directory}
  def enroll(count), do: enroll(count, @max_attempts)

  defp enroll(_count, 0), do: {:error, :no_directory}

  defp enroll(count, attempts) do
    case Process.whereis(__MODULE__) do
      nil ->
        Process.sleep(@pause_ms)
        enroll(count, attempts - 1)

      directory ->
        monitor = Process.monitor(directory)
        :ok = GenServer.call(directory, {:enroll, self(), count}, :infinity)
        {:ok, monitor}
    end
  end

  @doc """
  Registers the calling process as the receptor's worker number `index`, and returns its table of
  watchers.
  """
  @spec join(pid(), non_neg_integer(), tally()) :: :ets.tid()
  def join(receptor, index, tally) do
    GenServer.call(__MODULE__, {:join, self(), receptor, index, tally}, :infinity)
  end

  @doc """
  Returns the receptor's workers, starting with the next in turn; `[]` if this node does not know
  the receptor.
  """
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

  @doc """
  Returns all workers of a receptor, in the order of their numbers; `[]` if this node does not know
  the receptor.
  """
  @spec all(pid()) :: [pid()]
  def all(receptor) do
    case :ets.lookup(@table, receptor) do
      [{_, count, _}] -> rotation(receptor, count, 0)
      [] -> []
    end
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
    watchers = Watchers.table()
    # Do not insert a row for a receptor that has already ended.
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
    for {_, count, _} <- :ets.take(@table, receptor),
        index <- 0..(count - 1),
        do: :ets.delete(@table, {receptor, index})
  end

  defp gone({:worker, worker, watchers, tally}, reason) do
    Watchers.worker_down(watchers, worker, reason)
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
