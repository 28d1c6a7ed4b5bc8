#include "csi/local/testing/stepped_process.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>

namespace keelson::csi::local {

namespace {

bool IsStep(uint64_t call, uint64_t second) {
  static const std::set<uint64_t> kSteps = {
      SYS_rename,   SYS_renameat2,  SYS_unlink,    SYS_unlinkat,        SYS_mkdir, SYS_mkdirat, SYS_rmdir,
      SYS_mount,    SYS_umount2,    SYS_fsync,     SYS_ftruncate,       SYS_fork,  SYS_vfork,   SYS_clone,
      SYS_pwrite64, SYS_move_mount, SYS_fallocate, SYS_copy_file_range, SYS_wait4, SYS_waitid};
  static const std::set<uint64_t> kControls = {
      LOOP_CONFIGURE, LOOP_CLR_FD, LOOP_SET_CAPACITY, LOOP_SET_DIRECT_IO, FIFREEZE, FITHAW, FICLONE};
  return kSteps.contains(call) || (call == SYS_ioctl && kControls.contains(second));
}

}  // namespace

SteppedProcess::SteppedProcess(const std::vector<std::string>& argv, const std::string& output)
    : tracer_([this, argv, output] { Trace(argv, output); }) {}

SteppedProcess::~SteppedProcess() {
  stop_ = true;
  if (const pid_t pid = pid_) ::kill(pid, SIGKILL);
  tracer_.join();
}

// True: kill it.
bool SteppedProcess::Step(pid_t thread) {
  static thread_local std::map<pid_t, std::pair<uint64_t, uint64_t>> calls;
  __ptrace_syscall_info info = {};
  if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return false;
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) calls[thread] = {info.entry.nr, info.entry.args[1]};
  if (info.op != PTRACE_SYSCALL_INFO_EXIT) return false;
  const auto [call, second] = calls[thread];
  if (left_ < 0 || !IsStep(call, second)) return false;
  return left_-- == 0;
}

void SteppedProcess::Trace(std::vector<std::string> argv, std::string output) {
  std::vector<char*> pointers;
  for (std::string& arg : argv) pointers.push_back(arg.data());
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(fd, 1);
    ::dup2(fd, 2);
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);  // stopped at execve
  ::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE);
  ::ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
  pid_ = pid;
  if (stop_) ::kill(pid, SIGKILL);
  for (;;) {
    // Only this thread's: the test has no other children that it did not make itself.
    const pid_t thread = ::waitpid(-1, &status, __WALL | __WNOTHREAD);
    if (thread < 0 && errno == EINTR) continue;
    if (thread < 0) break;
    if (!WIFSTOPPED(status)) {
      if (thread == pid) break;
      continue;
    }
    const int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      if (Step(thread)) ::kill(pid, SIGKILL);
      ::ptrace(PTRACE_SYSCALL, thread, nullptr, nullptr);
    } else {
      // A new thread begins with SIGSTOP, an event shows as SIGTRAP: neither is for the program.
      const bool own = signal == SIGTRAP || signal == SIGSTOP;
      ::ptrace(PTRACE_SYSCALL, thread, nullptr, own ? 0 : signal);
    }
  }
}

}  // namespace keelson::csi::local
