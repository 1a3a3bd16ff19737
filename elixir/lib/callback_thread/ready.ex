defmodule CallbackThread.Ready do
  @moduledoc """
  The queue of jobs that are ready to run, with its lengths at hand. Every step takes constant time.

  `fresh` counts the jobs that start a thread: those are the spawn requests that wait.
  """

  alias CallbackThread.Runner

  defstruct jobs: :queue.new(), count: 0, fresh: 0

  @type t :: %__MODULE__{}

  @doc "Adds a job at the end."
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
  Takes the first job.

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

  @doc "Puts jobs that were taken and not run back to the front. Takes a step for each of them."
  @spec give_back(t(), [Runner.job()]) :: t()
  def give_back(ready, []), do: ready

  def give_back(ready, jobs) do
    %{
      ready
      | jobs: :queue.join(:queue.from_list(jobs), ready.jobs),
        count: ready.count + length(jobs),
        fresh: ready.fresh + Enum.sum(for {_, work} <- jobs, do: fresh(work))
    }
  end

  defp fresh({:start, _}), do: 1
  defp fresh(_), do: 0
end
