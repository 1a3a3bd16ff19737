defmodule CallbackThread.MillionTest do
  use ExUnit.Case, async: false
  import CallbackThread.Helpers
  import ExUnit.CaptureIO
  alias Mix.Tasks.CallbackThread.Million

  # Long enough for a compilation and two BEAMs on a busy machine.
  @moduletag timeout: 300_000
  @timeout_ms 120_000

  for kind <- ["registered", "closures"] do
    test "#{kind} that fall due before they are counted are an error that says what to do" do
      arguments = ["20000", "--only", unquote(kind), "--wait", "0"]
      assert_raise Mix.Error, ~r/use a longer --wait/, fn -> Million.run(arguments) end
    end

    test "#{kind} are counted, and each is completed once" do
      arguments = ["100", "--only", unquote(kind), "--wait", "5"]
      output = capture_io(fn -> Million.run(arguments) end)
      assert output =~ "100 of 100 completed exactly once"
    end
  end

  for {signal, delay} <- [{"KILL", 0}, {"KILL", 3_000}, {"TERM", 1_000}] do
    test "a parent that is ended by SIG#{signal} after #{delay} ms leaves no BEAM behind" do
      # The number identifies the BEAMs of this test among all processes.
      units = "#{1_000 + :rand.uniform(8_999)}"
      task = ["callback_thread.million", units, "--wait", "3600"]
      mix = System.find_executable("mix")
      options = [:binary, :exit_status, args: task, env: [{~c"MIX_ENV", ~c"test"}]]
      port = Port.open({:spawn_executable, mix}, options)
      {:os_pid, parent} = Port.info(port, :os_pid)
      on_exit(fn -> for pid <- ["#{parent}" | children(units)], do: kill("KILL", pid) end)
      eventually(fn -> children(units) != [] end, @timeout_ms)
      Process.sleep(unquote(delay))
      # The command line cannot be read while one program executes the next (`elixir`, `erl`,
      # `beam.smp`).
      eventually(fn -> children(units) != [] end, @timeout_ms)
      assert kill(unquote(signal), "#{parent}") == 0
      eventually(fn -> children(units) == [] end, @timeout_ms)
      eventually(fn -> not File.exists?("/proc/#{parent}") end, @timeout_ms)
    end
  end

  # Returns the ids of the processes that measure one kind with the given number of units.
  defp children(units) do
    for directory <- Path.wildcard("/proc/[0-9]*"),
        {:ok, line} <- [File.read(Path.join(directory, "cmdline"))],
        words = String.split(line, "\0"),
        units in words and "--only" in words,
        do: Path.basename(directory)
  end

  defp kill(signal, pid) do
    {_, status} = System.cmd("kill", ["-#{signal}", pid], stderr_to_stdout: true)
    status
  end
end
