# Makes a thread wait for each primitive of Ruby or, if asked to, two threads compute. The thread's name
# says which. Ends with its standard input, as its child does.

require "socket"

HOUR = 3600

def start(name)
  Thread.new do
    Thread.current.name = name
    yield
    exit!(1)
  end
end

def start_waits
  held = Mutex.new.lock
  start("mutex") { held.lock }
  start("condition") { ConditionVariable.new.wait(Mutex.new.lock) }
  start("queue") { Queue.new.pop }
  start("sized_queue") { SizedQueue.new(1).push(1).push(2) }
  sleeper = start("sleep") { sleep(HOUR) }
  start("stop") { Thread.stop }
  start("join") { sleeper.join }
  reader, $writer = IO.pipe
  start("pipe") { reader.read(1) }
  start("select") { IO.select([reader]) }
  own, $peer = UNIXSocket.pair
  start("socket") { own.recv(1) }
  child = spawn("cat")
  start("child") { Process.wait(child) }
end

if ARGV == ["compute"]
  start("compute_1") { loop {} }
  start("compute_2") { loop {} }
else
  start_waits
end
$stdin.read
exit!(0)
