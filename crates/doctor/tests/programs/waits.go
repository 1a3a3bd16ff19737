// Makes a thread wait for each primitive of Go. The thread's name says which. Ends with its standard
// input, as its child does.
package main

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	setName   = 15 // PR_SET_NAME
	inAnHour  = time.Hour
	blockSize = 1
)

// name names the current thread.
func name(text string) {
	bytes := append([]byte(text), 0)
	syscall.RawSyscall(syscall.SYS_PRCTL, setName, uintptr(unsafe.Pointer(&bytes[0])), 0)
}

// start runs a goroutine on a thread of its own, which waits while the goroutine does.
func start(text string, wait func()) {
	go func() {
		runtime.LockOSThread()
		name(text)
		wait()
		panic(text + " did not wait")
	}()
}

// The main goroutine runs on the main thread, whose name is that of the process.
func init() { runtime.LockOSThread() }

func main() {
	var mutex sync.Mutex
	mutex.Lock()
	start("mutex", mutex.Lock)
	var readWrite sync.RWMutex
	readWrite.Lock()
	start("read_lock", readWrite.RLock)
	start("write_lock", readWrite.Lock)
	var own sync.Mutex
	condition := sync.NewCond(&own)
	start("condition", func() { own.Lock(); condition.Wait() })
	var group sync.WaitGroup
	group.Add(1)
	start("wait_group", group.Wait)
	var once sync.Once
	start("initialiser", func() { once.Do(func() { select {} }) })
	values := make(chan int)
	start("receive", func() { <-values })
	start("send", func() { make(chan int) <- 1 })
	start("select", func() {
		select {
		case <-values:
		case <-time.After(inAnHour):
		}
	})
	start("sleep", func() { time.Sleep(inAnHour) })
	reader, writer, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	// The runtime polls this pipe.
	start("polled_pipe", func() { reader.Read(make([]byte, blockSize)) })
	var raw [2]int
	if err := syscall.Pipe(raw[:]); err != nil {
		panic(err)
	}
	start("raw_pipe", func() { syscall.Read(raw[0], make([]byte, blockSize)) })
	start("nanosleep", func() { syscall.Nanosleep(&syscall.Timespec{Sec: 3600}, nil) })
	start("child", func() {
		command := exec.Command("cat")
		command.Stdin = os.Stdin
		command.Run()
	})
	name("main_pipe")
	for {
		if count, err := syscall.Read(0, make([]byte, blockSize)); count <= 0 && err != syscall.EINTR {
			break
		}
	}
	runtime.KeepAlive(writer)
}
