package cedar

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the CPU time of the process, user and system.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportCPU gives the benchmark the CPU seconds per 10^9 bytes, of both ends
// together.
func reportCPU(b *testing.B, size int64, start time.Duration) {
	b.ReportMetric((cpuTime()-start).Seconds()/(float64(size)*float64(b.N)/1e9), "cpu-s/GB")
}

type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }

// benchSize is how much a benchmark of files sends.
const benchSize = 512 << 20

// BenchmarkReceive takes files from another process; only this side's CPU
// time is counted.
func BenchmarkReceive(b *testing.B) {
	for _, role := range []string{"send", "send like HTCondor"} {
		for _, to := range []string{"nowhere", "file"} {
			b.Run(role+" to "+to, func(b *testing.B) {
				var dst io.Writer = nothing{}
				if to == "file" {
					f, err := os.Create(filepath.Join(b.TempDir(), "target"))
					if err != nil {
						b.Fatal(err)
					}
					defer f.Close()
					dst = f
				}
				b.SetBytes(benchSize)
				var cpu time.Duration
				for range b.N {
					rx, tx := pair(b)
					encrypt(b, tx, rx)
					b.StopTimer()
					wait := startPeer(b, role, benchSize, tx)
					b.StartTimer()
					start := cpuTime()
					if _, err := rx.GetFile(dst, -1); err != nil {
						b.Fatal(err)
					}
					cpu += cpuTime() - start
					rx.Close()
					wait()
				}
				b.ReportMetric(cpu.Seconds()/(benchSize*float64(b.N)/1e9), "cpu-s/GB")
			})
		}
	}
}

// BenchmarkSend gives files to another process.
func BenchmarkSend(b *testing.B) {
	source := filepath.Join(b.TempDir(), "source")
	if err := os.WriteFile(source, make([]byte, benchSize), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, from := range []string{"nowhere", "file"} {
		b.Run("from "+from, func(b *testing.B) {
			b.SetBytes(benchSize)
			var cpu time.Duration
			for range b.N {
				var src io.Reader = zeros{}
				if from == "file" {
					f, err := os.Open(source)
					if err != nil {
						b.Fatal(err)
					}
					defer f.Close()
					src = f
				}
				tx, rx := pair(b)
				encrypt(b, tx, rx)
				b.StopTimer()
				wait := startPeer(b, "receive", benchSize, rx)
				b.StartTimer()
				start := cpuTime()
				if err := tx.PutFile(src, benchSize); err != nil {
					b.Fatal(err)
				}
				cpu += cpuTime() - start
				tx.Close()
				wait()
			}
			b.ReportMetric(cpu.Seconds()/(benchSize*float64(b.N)/1e9), "cpu-s/GB")
		})
	}
}

// BenchmarkMessages takes little messages that another process sends one by one.
func BenchmarkMessages(b *testing.B) {
	const messages = 100_000
	for _, patient := range []bool{false, true} {
		b.Run(fmt.Sprintf("patient=%t", patient), func(b *testing.B) {
			var cpu time.Duration
			for range b.N {
				rx, tx := pair(b)
				encrypt(b, tx, rx)
				rx.SetPatient(patient)
				b.StopTimer()
				wait := startPeer(b, "messages", messages, tx)
				b.StartTimer()
				start := cpuTime()
				for i := range messages {
					v, err := rx.GetInt()
					if err == nil {
						err = rx.EndOfMessage()
					}
					if err != nil || v != int64(i) {
						b.Fatal(i, v, err)
					}
				}
				cpu += cpuTime() - start
				rx.Close()
				wait()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages*b.N), "ns/message")
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(messages*b.N), "cpu-ns/message")
		})
	}
}

// BenchmarkPackets receives what HTCondor itself sends: messages of
// 256 KiB in packets of about 4 KiB.
func BenchmarkPackets(b *testing.B) {
	const message = 256 << 10
	buf := make([]byte, message)
	for _, packet := range []int{4075, 64 << 10, 256 << 10, MaxPacketSize} {
		b.Run(fmt.Sprint(packet), func(b *testing.B) {
			tx, rx := pair(b)
			encrypt(b, tx, rx)
			tx.SetPacketSize(packet)
			b.SetBytes(message)
			done := make(chan error, 1)
			stop := make(chan struct{})
			go func() {
				data := make([]byte, message)
				for {
					select {
					case <-stop:
						done <- nil
						return
					default:
					}
					tx.PutBytes(data)
					if err := tx.EndMessage(); err != nil {
						done <- err
						return
					}
				}
			}()
			start := cpuTime()
			for b.Loop() {
				if _, err := rx.ReadMessage(buf); err != nil {
					b.Fatal(err)
				}
			}
			reportCPU(b, message, start)
			close(stop)
			rx.Close()
			<-done
		})
	}
}

// BenchmarkSmall puts and takes little messages, as remote calls do.
func BenchmarkSmall(b *testing.B) {
	tx, rx := pair(b)
	encrypt(b, tx, rx)
	b.ReportAllocs()
	for b.Loop() {
		tx.PutInt(1)
		tx.PutString("name")
		if err := tx.EndMessage(); err != nil {
			b.Fatal(err)
		}
		if _, err := rx.GetInt(); err != nil {
			b.Fatal(err)
		}
		if _, err := rx.GetString(); err != nil {
			b.Fatal(err)
		}
		if err := rx.EndOfMessage(); err != nil {
			b.Fatal(err)
		}
	}
}
