defmodule CallbackThread.Application do
  @moduledoc false
  use Application

  @impl true
  def start(_type, _args) do
    children = [
      CallbackThread.Directory,
      {DynamicSupervisor, name: CallbackThread.Receptors, strategy: :one_for_one}
    ]

    # Receptors depend on the directory, but not vice versa.
    Supervisor.start_link(children, strategy: :rest_for_one, name: CallbackThread.Supervisor)
  end
end
