#include "controlplane/etcd/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "lib/base/file.h"

namespace keelson::etcd {
namespace {

// "etcd" -> "/usr/bin/etcd": execvp is not safe to call between fork and exec in a threaded process.
std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    size_t colon = rest.find(':');
    std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    if (colon == std::string_view::npos) return name;
    rest.remove_prefix(colon + 1);
  }
}

// This process's, without what is between it and systemd: etcd notifies too, and is not the unit.
std::vector<char*> Environment() {
  std::vector<char*> out;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool systemds = text.starts_with("NOTIFY_SOCKET=") || text.starts_with("WATCHDOG_");
    if (!systemds) out.push_back(*variable);
  }
  out.push_back(nullptr);
  return out;
}

// Only async-signal-safe calls between here and exec.
[[noreturn]] void Become(const char* program, char* const argv[], char* const envp[], const char* directory,
                         int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(126);  // the parent died before the line above
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  syscall(SYS_close_range, 3U, ~0U, 0U);
  if (chdir(directory) != 0) _exit(126);
  setpgid(0, 0);  // a terminal's Ctrl-C only reaches us; we end the child in order
  execve(program, argv, envp);
  _exit(127);
}

}  // namespace

Result<Child> Child::Start(const std::vector<std::string>& arguments, const std::string& directory,
                           const std::string& log_file) {
  std::string program = std::filesystem::absolute(FindProgram(arguments.at(0)));
  if (access(program.c_str(), X_OK) != 0) return ErrnoError(program);
  KEELSON_ASSIGN_OR_RETURN(UniqueFd log, OpenFile(log_file, O_WRONLY | O_CREAT | O_APPEND, 0640));
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::vector<char*> environment = Environment();
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return ErrnoError("fork");
  if (pid == 0) {
    Become(program.c_str(), argv.data(), environment.data(), directory.c_str(), log.get(), parent);
  }
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    Error error = ErrnoError("pidfd_open");
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return error;
  }
  return Child(pid, std::move(pidfd));
}

Child::~Child() {
  if (!pidfd_) return;
  Signal(SIGKILL);
  Wait();
}

void Child::Signal(int number) {
  if (pidfd_) syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0);
}

std::string Child::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pidfd_.Reset();
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {}", WTERMSIG(status));
  return fmt::format("exited with {}", WEXITSTATUS(status));
}

}  // namespace keelson::etcd
