defmodule CallbackThread.Ready do
  @moduledoc """
  A queue of the jobs that are ready to run, with counters. Operations take amortised constant
  time.

  `fresh` is the number of jobs that start a thread, which are the waiting spawn requests.

  The job of a cancelled thread remains in the queue as a stale job. When more than half of the
  jobs may be stale, they are removed, so that they neither occupy memory nor count as requests
  for long.
  """

  alias CallbackThread.{Runner, Slots}

  defstruct jobs: :queue.new(), count: 0, fresh: 0, stale: 0

  @type t :: %__MODULE__{}

  @doc "Appends a job."
  @spec push(t(), Runner.job()) :: t()
  def push(ready, {_, work} = job) do
    %{
      ready
      | jobs: :queue.in(job, ready.jobs),
        count: ready.count + 1,
        fresh: ready.fresh + fresh(work)
    }
  end

  @doc """
  Removes and returns the first job, or returns `:empty`.

      iex> ready = CallbackThread.Ready.push(%CallbackThread.Ready{}, {7, {:due, &self/0}})
      iex> {{7, {:due, _}}, rest} = CallbackThread.Ready.pop(ready)
      iex> CallbackThread.Ready.pop(rest)
      :empty
  """
  @spec pop(t()) :: {Runner.job(), t()} | :empty
  def pop(%{count: 0}), do: :empty

  def pop(ready) do
    {{:value, {_, work} = job}, jobs} = :queue.out(ready.jobs)
    {job, %{ready | jobs: jobs, count: ready.count - 1, fresh: ready.fresh - fresh(work)}}
  end

  @doc "Puts unexecuted jobs back at the front, in time proportional to their number."
  @spec return_jobs(t(), [Runner.job()]) :: t()
  def return_jobs(ready, []), do: ready

  def return_jobs(ready, jobs) do
    %{
      ready
      | jobs: :queue.join(:queue.from_list(jobs), ready.jobs),
        count: ready.count + length(jobs),
        fresh: ready.fresh + count_fresh(jobs)
    }
  end

  @doc """
  Counts one more stale job, after the cancellation of a thread, and removes all stale jobs if more
  than half of the jobs may be stale. `live?` returns whether a key still names a thread.

      iex> alias CallbackThread.Ready
      iex> ready = Enum.reduce(1..4, %Ready{}, &Ready.push(&2, {&1, {:start, fn -> 1 end}}))
      iex> ready = Enum.reduce(1..3, ready, &Ready.forget(&2, fn key -> key > &1 end))
      iex> {ready.count, ready.fresh}
      {1, 1}
  """
  @spec forget(t(), (Slots.key() -> boolean())) :: t()
  def forget(%{stale: stale, count: count} = ready, _live?) when 2 * (stale + 1) <= count,
    do: %{ready | stale: stale + 1}

  def forget(ready, live?) do
    jobs = for {key, _} = job <- :queue.to_list(ready.jobs), live?.(key), do: job
    %__MODULE__{jobs: :queue.from_list(jobs), count: length(jobs), fresh: count_fresh(jobs)}
  end

  defp count_fresh(jobs), do: Enum.count(jobs, fn {_, work} -> fresh(work) == 1 end)
  defp fresh({:start, _}), do: 1
  defp fresh(_), do: 0
end
