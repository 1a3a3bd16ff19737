defmodule CallbackThread.Crew do
  @moduledoc """
  Manages a worker's runners: assigns jobs to them, and moves jobs away from blocked callbacks.

  As long as callbacks return promptly, one runner executes them in batches, and no further
  process is started. `look/1`, called about every millisecond while a batch runs, detects a
  runner that waits inside a callback (or computes in the same one for 10 samples). The rest of
  the batch then moves to a new runner, and the blocked runner ends when its callback returns.

  Each detection delays the other callbacks by a millisecond or two. Therefore, the crew counts
  points: 64 for each detection, minus one for each prompt callback. From 256 points on, every job
  gets its own process immediately, until the points are used up. Thus, 10,000 sleeping callbacks
  cost four detections and then 10,000 processes.

  `others` maps the other runners, which do not run the batch, to the jobs that they have claimed
  but not reported. Outcomes arrive in order, so such a runner can only be inside its last job.
  """

  import Bitwise, only: [<<<: 2]
  alias CallbackThread.Runner

  @batch 128
  @taken_away 1 <<< 40
  @stuck_looks 10
  @points 64
  @solo_from 256
  @prompt_us 1_000

  defstruct [
    :context,
    :max,
    # the runner for batches, and the counter by which it claims jobs
    runner: nil,
    claim: nil,
    pending: [],
    got: 0,
    others: %{},
    # key => runner, for the job that each other runner is executing
    inside: %{},
    points: 0,
    solo: false,
    # the previous sample: claimed jobs, and status and reductions of the runner
    mark: nil,
    stuck: 0
  ]

  @type t :: %__MODULE__{}

  @doc "Returns a crew without runners, which will have at most `max` of them at a time."
  @spec new(Runner.context(), pos_integer()) :: t()
  def new(context, max), do: %__MODULE__{context: context, max: max}

  @doc "Returns the number of jobs for which there is room."
  @spec room(t()) :: non_neg_integer()
  def room(%{pending: [_ | _]}), do: 0
  def room(%{solo: true} = crew), do: max(0, min(@batch, crew.max - map_size(crew.others)))
  def room(crew), do: if(map_size(crew.others) < crew.max, do: @batch, else: 0)

  @doc "Returns whether a batch is running."
  @spec busy?(t()) :: boolean()
  def busy?(crew), do: crew.pending != []

  @doc "Returns the number of runners."
  @spec runners(t()) :: non_neg_integer()
  def runners(crew), do: map_size(crew.others) + if(crew.runner, do: 1, else: 0)

  @doc "Gives jobs to runners. There must be room for all of them."
  @spec run(t(), [Runner.job()]) :: t()
  def run(crew, []), do: crew
  def run(%{solo: true} = crew, jobs), do: Enum.reduce(jobs, crew, &run_solo/2)

  def run(crew, jobs) do
    runner = crew.runner || Runner.start(crew.context)
    claim = :atomics.new(1, signed: false)
    Runner.give(runner, crew.context, List.to_tuple(jobs), claim)
    %{crew | runner: runner, claim: claim, pending: jobs, got: 0, mark: nil, stuck: 0}
  end

  defp run_solo({key, _} = job, crew) do
    runner = Runner.start_solo(crew.context, job)
    others = Map.put(crew.others, runner, {:solo, [job]})
    %{crew | others: others, inside: Map.put(crew.inside, key, runner)}
  end

  @doc "Records that a runner has reported the outcome of a job, which took `us` microseconds."
  @spec reported(t(), pid(), CallbackThread.Slots.key(), non_neg_integer()) :: t()
  def reported(%{runner: runner} = crew, runner, key, _us) do
    [{^key, _} | pending] = crew.pending
    prompt(%{crew | pending: pending, got: crew.got + 1})
  end

  def reported(crew, runner, key, us) do
    {mode, [{^key, _} | pending]} = Map.fetch!(crew.others, runner)
    crew = %{crew | inside: Map.delete(crew.inside, key)}

    crew =
      if pending == [],
        do: done(crew, runner, mode),
        else: put_in(crew.others[runner], {mode, pending})

    cond do
      mode == :detached -> crew
      us <= @prompt_us -> prompt(crew)
      true -> %{crew | points: @solo_from}
    end
  end

  defp done(crew, runner, mode) do
    if mode == :detached, do: Runner.stop(runner, crew.context)
    %{crew | others: Map.delete(crew.others, runner)}
  end

  defp prompt(%{points: 0} = crew), do: crew
  defp prompt(%{points: 1} = crew), do: %{crew | points: 0, solo: false}
  defp prompt(crew), do: %{crew | points: crew.points - 1}

  @doc """
  Removes a runner that has ended. Returns the keys of the threads in whose callbacks it was (one,
  or none), and the unclaimed jobs, which another runner has to run.
  """
  @spec exited(t(), pid()) :: {[CallbackThread.Slots.key()], [Runner.job()], t()}
  def exited(%{runner: runner} = crew, runner) when runner != nil do
    {claimed, rest} = take_away(crew)
    {keys(claimed), rest, %{crew | runner: nil, claim: nil, pending: []}}
  end

  def exited(crew, runner) do
    {{_mode, jobs}, others} = Map.pop(crew.others, runner, {:gone, []})
    lost = keys(jobs)
    {lost, [], %{crew | others: others, inside: Map.drop(crew.inside, lost)}}
  end

  @doc """
  Checks whether the runner of the batch is blocked. Returns the jobs taken away from it, or `[]`.
  """
  @spec look(t()) :: {[Runner.job()], t()}
  def look(%{pending: []} = crew), do: {[], crew}

  def look(crew) do
    claimed = :atomics.get(crew.claim, 1)

    cond do
      # The batch is complete; the last outcomes are in the mailbox.
      claimed > crew.got + length(crew.pending) ->
        {[], %{crew | mark: nil}}

      crew.mark == nil or elem(crew.mark, 0) != claimed ->
        {[], %{crew | mark: {claimed, effort(crew)}, stuck: 0}}

      true ->
        look_again(crew, effort(crew))
    end
  end

  # Waiting without progress since the last sample counts as blocking. A computing callback gets more time:
  # it may only be waiting for a scheduler.
  defp look_again(%{mark: {claimed, before}} = crew, {status, _} = effort) do
    stuck = crew.stuck + 1

    cond do
      status == :waiting and effort == before -> detach_blocked(crew)
      stuck >= @stuck_looks -> detach_blocked(crew)
      true -> {[], %{crew | mark: {claimed, effort}, stuck: stuck}}
    end
  end

  defp effort(crew) do
    case Process.info(crew.runner, [:status, :reductions]) do
      [status: status, reductions: reductions] -> {status, reductions}
      # The runner's exit signal is in transit.
      nil -> {:gone, 0}
    end
  end

  defp detach_blocked(crew) do
    points = min(@solo_from, crew.points + @points)
    detach(%{crew | points: points, solo: crew.solo or points == @solo_from})
  end

  @doc """
  Takes the job of a thread from its runner, and kills the runner if it is inside the callback.
  Returns the jobs that another runner has to run.
  """
  @spec interrupt(t(), CallbackThread.Slots.key()) :: {[Runner.job()], t()}
  def interrupt(crew, key) do
    ours = List.keymember?(crew.pending, key, 0)
    {rest, crew} = if ours, do: detach(crew), else: {[], crew}
    # The runner can claim no more jobs, so the signal cannot hit another thread.
    with %{^key => runner} <- crew.inside, do: Process.exit(runner, :kill)
    {List.keydelete(rest, key, 0), crew}
  end

  @doc "Ends an idle runner for batches, which frees its memory."
  @spec rest(t()) :: t()
  def rest(%{pending: [], runner: runner} = crew) when runner != nil do
    Runner.stop(runner, crew.context)
    %{crew | runner: nil, claim: nil, others: Map.put(crew.others, runner, {:detached, []})}
  end

  def rest(crew), do: crew

  defp detach(crew) do
    {claimed, rest} = take_away(crew)

    inside =
      if claimed == [],
        do: crew.inside,
        else: Map.put(crew.inside, last_key(claimed), crew.runner)

    others = Map.put(crew.others, crew.runner, {:detached, claimed})
    if claimed == [], do: Runner.stop(crew.runner, crew.context)

    {rest,
     %{
       crew
       | runner: nil,
         claim: nil,
         pending: [],
         others: others,
         inside: inside,
         mark: nil,
         stuck: 0
     }}
  end

  defp take_away(%{claim: nil}), do: {[], []}

  defp take_away(crew) do
    claimed = :atomics.exchange(crew.claim, 1, @taken_away)
    Enum.split(crew.pending, max(0, claimed - crew.got))
  end

  defp last_key(jobs), do: jobs |> List.last() |> elem(0)
  defp keys(jobs), do: Enum.map(jobs, &elem(&1, 0))
end
