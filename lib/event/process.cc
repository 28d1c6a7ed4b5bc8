#include "lib/event/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "lib/base/file.h"

namespace keelson::event {
namespace {

struct ExecPlan {
  std::vector<char*> argv, envp;
  const char* directory = nullptr;
  int input = -1, output = -1, own_output = -1;
  int report = -1;
  bool die_with_parent = false;
  bool new_group = false;
  pid_t parent = 0;
};

// Runs in the child between fork and exec: async-signal-safe calls only.
[[noreturn]] void RunChild(const ExecPlan& plan) {
  auto fail = [&] {
    int error = errno;
    [[maybe_unused]] ssize_t n = write(plan.report, &error, sizeof error);
    _exit(127);
  };
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  if (plan.die_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(127);  // the parent was gone before prctl
  }
  if (plan.new_group) setpgid(0, 0);
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, 0);
  if (plan.input >= 0 && dup2(plan.input, 0) < 0) fail();
  if (plan.output >= 0 && (dup2(plan.output, 1) < 0 || dup2(plan.output, 2) < 0)) fail();
  if (plan.own_output >= 0 && dup2(plan.own_output, 1) < 0) fail();
  if (plan.directory && chdir(plan.directory) < 0) fail();
  execvpe(plan.argv[0], plan.argv.data(), plan.envp.data());
  fail();
  _exit(127);
}

std::vector<std::string> MergedEnvironment(const std::vector<std::pair<std::string, std::string>>& extra) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text(*entry);
    std::string_view name = text.substr(0, text.find('='));
    bool replaced = std::any_of(extra.begin(), extra.end(), [&](const auto& e) { return e.first == name; });
    if (!replaced) merged.emplace_back(text);
  }
  for (const auto& [name, value] : extra) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string ExitStatus::ToString() const {
  return signal ? "signal " + std::to_string(signal) : "exit code " + std::to_string(code);
}

Result<Process> Process::Start(const ProcessOptions& options) {
  if (options.argv.empty()) return Error(Code::kBadRequest, "start process: no command");
  std::vector<std::string> argv = options.argv, env = MergedEnvironment(options.env);
  ExecPlan plan;
  plan.argv = Pointers(argv);
  plan.envp = Pointers(env);
  if (!options.working_directory.empty()) plan.directory = options.working_directory.c_str();
  plan.die_with_parent = options.die_with_parent;
  plan.new_group = options.new_process_group;
  plan.parent = getpid();
  UniqueFd output;
  if (!options.output_file.empty()) {
    output.Reset(open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
    if (!output) return ErrnoError("open " + options.output_file);
    plan.output = output.get();
  }
  UniqueFd input;
  if (!options.input.empty()) {
    input.Reset(memfd_create("stdin", MFD_CLOEXEC));
    if (!input) return ErrnoError("memfd_create");
    KEELSON_RETURN_IF_ERROR(WriteAll(input.get(), options.input, "stdin of " + options.argv[0]));
    if (lseek(input.get(), 0, SEEK_SET) < 0) return ErrnoError("lseek");
    plan.input = input.get();
  }
  plan.own_output = options.output_fd;
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) < 0) return ErrnoError("pipe");
  UniqueFd report_read(pipe_fds[0]), report_write(pipe_fds[1]);
  plan.report = report_write.get();

  pid_t pid = fork();
  if (pid < 0) return ErrnoError("fork");
  if (pid == 0) RunChild(plan);
  report_write.Reset();
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    Error error = ErrnoError("pidfd_open");
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return error;
  }
  int error = 0;
  ssize_t n;
  do n = read(report_read.get(), &error, sizeof error);
  while (n < 0 && errno == EINTR);
  if (n == sizeof error) {
    waitpid(pid, nullptr, 0);
    return Error::FromErrno(error, "start " + options.argv[0]);
  }
  return Process(pid, std::move(pidfd));
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)), exit_(other.exit_) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    this->~Process();
    new (this) Process(std::move(other));
  }
  return *this;
}

Process::~Process() {
  if (pid_ < 0 || exit_) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Process::Reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  ExitStatus exit;
  if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
  } else {
    exit.code = WEXITSTATUS(status);
  }
  exit_ = exit;
}

Result<ExitStatus> Process::Wait(std::stop_token stop, std::chrono::milliseconds timeout) {
  if (exit_) return *exit_;
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoError("eventfd");
  std::stop_callback on_stop(stop, [&] { eventfd_write(wake.get(), 1); });
  auto start = std::chrono::steady_clock::now();
  for (;;) {
    int left = -1;
    if (timeout != std::chrono::milliseconds::max()) {
      auto spent =
          std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
      left = static_cast<int>(std::clamp<int64_t>((timeout - spent).count(), 0, 1 << 30));
    }
    pollfd fds[2] = {{pidfd_.get(), POLLIN, 0}, {wake.get(), POLLIN, 0}};
    int n = poll(fds, 2, left);
    if (n < 0 && errno != EINTR) return ErrnoError("poll");
    if (n > 0 && fds[0].revents) {
      Reap();
      return *exit_;
    }
    if (stop.stop_requested()) return Error(Code::kCancelled, "wait for process: stopped");
    if (n == 0 && left == 0) return Error(Code::kTimeout, "wait for process: still running");
  }
}

Result<> Process::Signal(int signal) {
  if (syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0) < 0) {
    return ErrnoError("signal process");
  }
  return {};
}

Result<ExitStatus> Process::Terminate(std::chrono::milliseconds grace) {
  if (exit_) return *exit_;
  Result<> asked = Signal(SIGTERM);
  if (asked) {
    Result<ExitStatus> ended = Wait({}, grace);
    if (ended || !ended.error().Is(Code::kTimeout)) return ended;
  }
  [[maybe_unused]] Result<> killed = Signal(SIGKILL);
  return Wait({});
}

}  // namespace keelson::event
