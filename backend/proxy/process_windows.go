package proxy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// diesWithUs says whether the system ends agents when Deskhand dies. A job object whose last handle is closed does, so neither watchdog
// nor ledger is needed. (Not tested on Windows yet; only built and vetted.)
const diesWithUs = true

func widen(*os.File) {}

func bootID() string { return "" }

func endLeftovers(string, []ident, bool) error { return nil }

func remains(record) *family { return nil }

func familyAt(int) *family { return nil }

func ignoreSignals() {}

// keep opens a directory. Go's os.Open does not share the right to delete, so nobody can remove or rename the directory while it is open.
// The files that a node program has loaded are not open any more, and its environment cannot be read.
func keep(dir string) *os.File {
	if dir == "" {
		return nil
	}
	f, _ := os.Open(dir) // the start goes on without it: the program's own error may say more
	return f
}

// isBusy is always false: nothing forks on Windows, so no child holds a new program open.
func isBusy(error) bool { return false }

func signalName(*os.ProcessState) string { return "" }

// agentAttributes starts the agent suspended: the agent must be in its job before it can start a process outside of the job.
func agentAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW, HideWindow: true,
	}
}

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
}

// family is the job that contains the agent and all its descendants.
type family struct {
	mu  sync.Mutex // protects job
	job windows.Handle
}

// adopt puts the suspended process into a job and resumes the process.
func adopt(p *os.Process, _ string) (ident, *family, error) {
	id := ident{PID: p.Pid}
	job, err := newJob()
	if err != nil {
		return id, nil, err
	}
	handle, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err == nil {
		err = errors.Join(windows.AssignProcessToJobObject(job, handle), windows.CloseHandle(handle))
	}
	if err == nil {
		err = resume(uint32(p.Pid))
	}
	if err != nil {
		return id, nil, errors.Join(fmt.Errorf("job object: %w", err), windows.CloseHandle(job))
	}
	return id, &family{job: job}, nil
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		return 0, errors.Join(err, windows.CloseHandle(job))
	}
	return job, nil
}

// resume resumes the first thread of a suspended process. os/exec has closed the thread's handle, so resume searches the thread.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		_, err = windows.ResumeThread(thread)
		return errors.Join(err, windows.CloseHandle(thread))
	}
	return err
}

func (f *family) note() {}

// interrupt returns ErrNoSignal: Ctrl-Break, the nearest to SIGINT, reaches only the processes of our own console, and an agent has a
// console of its own (CREATE_NO_WINDOW). A helper process in that console could send Ctrl-Break, but scripts answer with a question that
// nobody sees.
func (f *family) interrupt() error { return ErrNoSignal }

func (f *family) terminate() error { return ErrNoSignal }

// kill ends the job. Its members are gone when their handles are; only the pipes wait for that, and they are at their end then.
func (f *family) kill(time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.job == 0 {
		return nil
	}
	err := windows.TerminateJobObject(f.job, 1)
	err = errors.Join(err, windows.CloseHandle(f.job))
	f.job = 0
	return err
}

// readNow is not reached: reads of a pipe have no deadline on Windows.
func readNow(*os.File, []byte) (int, error) { return 0, io.EOF }
