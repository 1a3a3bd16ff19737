defmodule CallbackThread.RunnerPool do
  @moduledoc """
  Manages a worker's runners: assigns jobs to them, and moves jobs away from blocked callbacks.

  As long as callbacks return promptly, one runner executes them in batches, and no further
  process is started. `check_blocked/1`, called about every millisecond while a batch runs, detects
  a runner that waits inside a callback (or computes in the same one for 10 samples). The rest of
  the batch then moves to a new runner, and the blocked runner ends when its callback returns.

  Each detection delays the other callbacks by a millisecond or two. Therefore, the pool counts
  points: 64 for each detection, minus one for each prompt callback. From 256 points on, every job
  gets its own process immediately, until the points are used up. Thus, 10,000 sleeping callbacks
  cost four detections and then 10,000 processes.

  `others` maps the other runners, which do not run the batch, to the jobs that they have claimed
  but not reported. Outcomes arrive in order, so such a runner can only be inside its last job.
  """

  import Bitwise, only: [<<<: 2]
  alias CallbackThread.Runner

  @max_batch_jobs 128
  @revoked_claim 1 <<< 40
  @max_stuck_samples 10
  @points_per_detection 64
  @min_solo_points 256
  @max_prompt_us 1_000

  defstruct [
    :context,
    :max_runners,
    # the runner for batches, and the counter by which it claims jobs
    runner: nil,
    claim: nil,
    pending: [],
    reported_jobs: 0,
    others: %{},
    # key => runner, for the job that each other runner is executing
    runner_by_key: %{},
    points: 0,
    solo: false,
    # the previous sample: claimed jobs, and status and reductions of the runner
    last_sample: nil,
    stuck_samples: 0
  ]

  @type t :: %__MODULE__{}

  @doc "Returns a pool without runners, which will have at most `max_runners` of them at a time."
  @spec new(Runner.context(), pos_integer()) :: t()
  def new(context, max_runners), do: %__MODULE__{context: context, max_runners: max_runners}

  @doc "Returns the number of jobs for which there is room."
  @spec room(t()) :: non_neg_integer()
  def room(%{pending: [_ | _]}), do: 0

  def room(%{solo: true} = pool),
    do: max(0, min(@max_batch_jobs, pool.max_runners - map_size(pool.others)))

  def room(pool), do: if(map_size(pool.others) < pool.max_runners, do: @max_batch_jobs, else: 0)

  @doc "Returns whether a batch is running."
  @spec busy?(t()) :: boolean()
  def busy?(pool), do: pool.pending != []

  @doc "Returns the number of runners."
  @spec runners(t()) :: non_neg_integer()
  def runners(pool), do: map_size(pool.others) + if(pool.runner, do: 1, else: 0)

  @doc "Gives jobs to runners. There must be room for all of them."
  @spec run(t(), [Runner.job()]) :: t()
  def run(pool, []), do: pool
  def run(%{solo: true} = pool, jobs), do: Enum.reduce(jobs, pool, &run_solo/2)

  def run(pool, jobs) do
    runner = pool.runner || Runner.start(pool.context)
    claim = :atomics.new(1, signed: false)
    Runner.give(runner, pool.context, List.to_tuple(jobs), claim)

    %{
      pool
      | runner: runner,
        claim: claim,
        pending: jobs,
        reported_jobs: 0,
        last_sample: nil,
        stuck_samples: 0
    }
  end

  defp run_solo({key, _} = job, pool) do
    runner = Runner.start_solo(pool.context, job)
    others = Map.put(pool.others, runner, {:solo, [job]})
    %{pool | others: others, runner_by_key: Map.put(pool.runner_by_key, key, runner)}
  end

  @doc """
  Records that a runner has reported the outcome of the job with the given key. For a job in its own
  process, `us` is the time that it took, in microseconds; for a job of a batch, it is ignored.
  """
  @spec reported(t(), pid(), CallbackThread.Slots.key(), non_neg_integer()) :: t()
  def reported(%{runner: runner} = pool, runner, key, _us) do
    [{^key, _} | pending] = pool.pending
    subtract_point(%{pool | pending: pending, reported_jobs: pool.reported_jobs + 1})
  end

  def reported(pool, runner, key, us) do
    {mode, [{^key, _} | pending]} = Map.fetch!(pool.others, runner)
    pool = %{pool | runner_by_key: Map.delete(pool.runner_by_key, key)}

    pool =
      if pending == [],
        do: done(pool, runner, mode),
        else: put_in(pool.others[runner], {mode, pending})

    cond do
      mode == :detached -> pool
      us <= @max_prompt_us -> subtract_point(pool)
      true -> %{pool | points: @min_solo_points}
    end
  end

  defp done(pool, runner, mode) do
    if mode == :detached, do: Runner.stop(runner, pool.context)
    %{pool | others: Map.delete(pool.others, runner)}
  end

  defp subtract_point(%{points: 0} = pool), do: pool
  defp subtract_point(%{points: 1} = pool), do: %{pool | points: 0, solo: false}
  defp subtract_point(pool), do: %{pool | points: pool.points - 1}

  @doc """
  Removes a runner that has ended. Returns the keys of the threads in whose callbacks it was (one,
  or none), and the unclaimed jobs, which another runner has to run.
  """
  @spec exited(t(), pid()) :: {[CallbackThread.Slots.key()], [Runner.job()], t()}
  def exited(%{runner: runner} = pool, runner) when runner != nil do
    {claimed, rest} = revoke_unclaimed(pool)
    {keys(claimed), rest, %{pool | runner: nil, claim: nil, pending: []}}
  end

  def exited(pool, runner) do
    {{_mode, jobs}, others} = Map.pop(pool.others, runner, {:gone, []})
    lost = keys(jobs)
    {lost, [], %{pool | others: others, runner_by_key: Map.drop(pool.runner_by_key, lost)}}
  end

  @doc """
  Checks whether the runner of the batch is blocked. If so, returns the jobs taken away from it,
  which another runner has to run; otherwise `[]`.
  """
  @spec check_blocked(t()) :: {[Runner.job()], t()}
  def check_blocked(%{pending: []} = pool), do: {[], pool}

  def check_blocked(pool) do
    claimed = :atomics.get(pool.claim, 1)

    cond do
      # The batch is complete; the last outcomes are in the mailbox.
      claimed > pool.reported_jobs + length(pool.pending) ->
        {[], %{pool | last_sample: nil}}

      pool.last_sample == nil or elem(pool.last_sample, 0) != claimed ->
        {[], %{pool | last_sample: {claimed, activity(pool)}, stuck_samples: 0}}

      true ->
        check_progress(pool, activity(pool))
    end
  end

  # Waiting without progress since the last sample counts as blocking. A computing callback gets more time:
  # it may only be waiting for a scheduler.
  defp check_progress(%{last_sample: {claimed, before}} = pool, {status, _} = activity) do
    stuck_samples = pool.stuck_samples + 1

    cond do
      status == :waiting and activity == before -> detach_blocked(pool)
      stuck_samples >= @max_stuck_samples -> detach_blocked(pool)
      true -> {[], %{pool | last_sample: {claimed, activity}, stuck_samples: stuck_samples}}
    end
  end

  defp activity(pool) do
    case Process.info(pool.runner, [:status, :reductions]) do
      [status: status, reductions: reductions] -> {status, reductions}
      # The runner's exit signal is in transit.
      nil -> {:gone, 0}
    end
  end

  defp detach_blocked(pool) do
    points = min(@min_solo_points, pool.points + @points_per_detection)
    detach(%{pool | points: points, solo: pool.solo or points == @min_solo_points})
  end

  @doc """
  Takes the job of a thread from its runner, and kills the runner if it is inside the callback.
  Returns the jobs that another runner has to run.
  """
  @spec interrupt(t(), CallbackThread.Slots.key()) :: {[Runner.job()], t()}
  def interrupt(pool, key) do
    in_batch = List.keymember?(pool.pending, key, 0)
    {rest, pool} = if in_batch, do: detach(pool), else: {[], pool}
    # The runner can claim no more jobs, so the signal cannot hit another thread.
    with %{^key => runner} <- pool.runner_by_key, do: Process.exit(runner, :kill)
    {List.keydelete(rest, key, 0), pool}
  end

  @doc "Ends the runner for batches, if there is one and it is idle, which frees its memory."
  @spec stop_idle_runner(t()) :: t()
  def stop_idle_runner(%{pending: [], runner: runner} = pool) when runner != nil do
    Runner.stop(runner, pool.context)
    %{pool | runner: nil, claim: nil, others: Map.put(pool.others, runner, {:detached, []})}
  end

  def stop_idle_runner(pool), do: pool

  defp detach(pool) do
    {claimed, rest} = revoke_unclaimed(pool)

    runner_by_key =
      if claimed == [],
        do: pool.runner_by_key,
        else: Map.put(pool.runner_by_key, last_key(claimed), pool.runner)

    others = Map.put(pool.others, pool.runner, {:detached, claimed})
    if claimed == [], do: Runner.stop(pool.runner, pool.context)

    {rest,
     %{
       pool
       | runner: nil,
         claim: nil,
         pending: [],
         others: others,
         runner_by_key: runner_by_key,
         last_sample: nil,
         stuck_samples: 0
     }}
  end

  defp revoke_unclaimed(%{claim: nil}), do: {[], []}

  defp revoke_unclaimed(pool) do
    claimed = :atomics.exchange(pool.claim, 1, @revoked_claim)
    Enum.split(pool.pending, max(0, claimed - pool.reported_jobs))
  end

  defp last_key(jobs), do: jobs |> List.last() |> elem(0)
  defp keys(jobs), do: Enum.map(jobs, &elem(&1, 0))
end
