#include "cni/lib/testing/run_until.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::cni {
namespace {

// A process that stops at its first instruction.
pid_t StartTraced(const std::string& program, const std::vector<std::string>& variables, int in, int out) {
  std::vector<char*> environment;
  for (const std::string& v : variables) environment.push_back(const_cast<char*>(v.c_str()));
  environment.push_back(nullptr);
  char* argv[] = {const_cast<char*>(program.c_str()), nullptr};
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  ::execve(program.c_str(), argv, environment.data());
  ::_exit(127);
}

}  // namespace

std::optional<Reply> RunUntil(int steps, const std::string& program,
                              const std::vector<std::string>& variables, const std::string& input,
                              const KillOptions& options) {
  UniqueFd in(::memfd_create("in", MFD_CLOEXEC)), out(::memfd_create("out", MFD_CLOEXEC));
  (void)WriteAll(in.get(), input, "memory");
  ::lseek(in.get(), 0, SEEK_SET);
  const pid_t pid = StartTraced(program, variables, in.get(), out.get());
  int status = 0;
  ::waitpid(pid, &status, 0);  // stopped at execve
  ::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
  uint64_t call = 0;
  for (int done = 0; done < steps;) {
    ::ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
    ::waitpid(pid, &status, 0);
    if (!WIFSTOPPED(status)) {
      ::lseek(out.get(), 0, SEEK_SET);
      return Reply{WIFEXITED(status) ? WEXITSTATUS(status) : 128, *ReadAll(out.get(), "memory")};
    }
    __ptrace_syscall_info info{};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) call = info.entry.nr;
    const auto counts = options.before ? PTRACE_SYSCALL_INFO_ENTRY : PTRACE_SYSCALL_INFO_EXIT;
    if (info.op == counts && options.is_step(call)) ++done;
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  return std::nullopt;
}

}  // namespace keelson::cni
