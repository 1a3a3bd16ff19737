defmodule CallbackThread.Watchers do
  @moduledoc """
  The watchers of a worker's threads: monitors, and spawners that receive replies.

  The rows are in a table that belongs to `CallbackThread.Directory`, so they outlive the worker:

  | row | watcher |
  |---|---|
  | `{{key, 0}, pid, ref}` | the spawner, at most one for each thread |
  | `{{key, ref}, pid, nil}` | a monitor |

  The table is ordered, so the rows of one thread are adjacent, and each can be found, inserted
  and removed without reading the others.

  The rows of a dead watcher remain until a sweep. A separate process sweeps the table when the
  number of new rows reaches the size of the table at the last sweep, and at least 1,024. Thus,
  dead rows never greatly outnumber live ones, and each row is checked once on average. Watchers
  on other nodes are assumed to be alive.
  """

  @sweep_after 1_024
  @sweep_batch_rows 512

  @enforce_keys [:table]
  # `any` avoids lookups while there are no watchers; `fresh` is the number of rows inserted since
  # the last sweep.
  defstruct [:table, any: false, fresh: 0, sweep_after: @sweep_after]

  @type t :: %__MODULE__{}
  @type key :: CallbackThread.Slots.key()

  @doc "Creates a table for one worker, which belongs to the calling process."
  @spec table() :: :ets.tid()
  def table, do: :ets.new(:callback_thread_watchers, [:ordered_set, :public])

  @doc "Returns the watchers of a worker, given their table."
  @spec new(:ets.tid()) :: t()
  def new(table), do: %__MODULE__{table: table}

  @doc "Returns the number of watchers, including dead ones that have not been swept."
  @spec size(t()) :: non_neg_integer()
  def size(watchers), do: :ets.info(watchers.table, :size)

  @doc "Adds the spawner that receives the replies of a thread, unless it is `nil`."
  @spec reply_to(t(), key(), {pid(), reference()} | nil) :: t()
  def reply_to(watchers, _key, nil), do: watchers
  def reply_to(watchers, key, {pid, ref}), do: enter(watchers, {{key, 0}, pid, ref})

  @doc "Adds a monitor of a thread by the process `pid`, with the reference `ref`."
  @spec monitor(t(), key(), pid(), reference()) :: t()
  def monitor(watchers, key, pid, ref), do: enter(watchers, {{key, ref}, pid, nil})

  @doc "Removes the monitor or the spawner with the given reference, if the thread has it."
  @spec demonitor(t(), key(), reference()) :: :ok
  def demonitor(%{table: table}, key, ref) do
    :ets.delete(table, {key, ref})
    with [{row, _, ^ref}] <- :ets.lookup(table, {key, 0}), do: :ets.delete(table, row)
    :ok
  end

  @doc "Sends replies to the spawner of a thread, if it has one."
  @spec replies(t(), key(), [term()]) :: :ok
  def replies(_watchers, _key, []), do: :ok
  def replies(%{any: false}, _key, _values), do: :ok

  def replies(watchers, key, values) do
    with [{_, pid, ref}] <- :ets.lookup(watchers.table, {key, 0}),
         do: Enum.each(values, &send(pid, {:reply, ref, &1}))

    :ok
  end

  @doc """
  Notifies the watchers of a thread that it has ended, and removes them.

  If the thread ended with a reply (`replied`), its spawner is not notified of a normal end.
  """
  @spec ended(t(), CallbackThread.id(), term(), replied :: boolean()) :: t()
  def ended(%{any: false} = watchers, _id, _reason, _replied), do: watchers

  def ended(%{table: table} = watchers, {_, _, key} = id, reason, replied) do
    notify(table, :ets.next(table, {key, -1}), key, id, reason, replied)
    if :ets.info(table, :size) == 0, do: %{watchers | any: false}, else: watchers
  end

  # In the order of terms, numbers precede references, so the spawner is first.
  defp notify(table, {key, _} = row, key, id, reason, replied) do
    # A sweep may have removed the row.
    case :ets.take(table, row) do
      [{{_, 0}, _, _}] when replied and reason == :normal -> :ok
      [watcher] -> down(watcher, id, reason)
      [] -> :ok
    end

    notify(table, :ets.next(table, row), key, id, reason, replied)
  end

  defp notify(_table, _next, _key, _id, _reason, _replied), do: :ok

  defp down({{_, 0}, pid, ref}, id, reason),
    do: send(pid, {:DOWN, ref, :callback_thread, id, reason})

  defp down({{_, ref}, pid, nil}, id, reason),
    do: send(pid, {:DOWN, ref, :callback_thread, id, reason})

  @doc """
  Notifies all watchers in a table that their threads have ended with the worker, and deletes the
  table.
  """
  @spec worker_down(:ets.tid(), pid(), term()) :: true
  def worker_down(table, worker, reason) do
    :ets.foldl(
      fn {{key, _}, _, _} = watcher, :ok ->
        down(watcher, {:callback_thread, worker, key}, {:worker_down, reason})
        :ok
      end,
      :ok,
      table
    )

    :ets.delete(table)
  end

  defp enter(watchers, row) do
    :ets.insert(watchers.table, row)
    sweep_when_due(%{watchers | any: true, fresh: watchers.fresh + 1})
  end

  defp sweep_when_due(%{fresh: fresh, sweep_after: limit} = watchers) when fresh < limit,
    do: watchers

  defp sweep_when_due(%{table: table} = watchers) do
    spawn(fn -> sweep(table) end)
    %{watchers | fresh: 0, sweep_after: max(@sweep_after, size(watchers))}
  end

  @doc "Removes the rows of dead watchers on this node. The table may have been deleted."
  @spec sweep(:ets.tid()) :: :ok
  def sweep(table) do
    sweep_on(
      table,
      :ets.select(table, [{{:"$1", :"$2", :_}, [], [{{:"$1", :"$2"}}]}], @sweep_batch_rows)
    )
  rescue
    # The worker has died, and its table has been deleted.
    ArgumentError -> :ok
  end

  defp sweep_on(_table, :"$end_of_table"), do: :ok

  defp sweep_on(table, {rows, continuation}) do
    for {row, pid} <- rows,
        node(pid) == node(),
        not Process.alive?(pid),
        do: :ets.delete(table, row)

    sweep_on(table, :ets.select(continuation))
  end
end
