defmodule CallbackThread.DocTest do
  use ExUnit.Case, async: true
  doctest CallbackThread
  doctest CallbackThread.Clock
  doctest CallbackThread.Inbox
  doctest CallbackThread.Memory
  doctest CallbackThread.Outcome
  doctest CallbackThread.Parked
  doctest CallbackThread.Ready
  doctest CallbackThread.Receptor
end
