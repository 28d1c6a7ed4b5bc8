#include "tests/nodectl/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

// The programs that a machine has in PATH besides the system's.
void AddProgram(const std::string& directory, const std::string& name, const std::string& script) {
  if (!WriteFile(directory + "/" + name, "#!/bin/sh\n" + script + "\n", 0755)) std::abort();
}

}  // namespace

std::string EnterNetwork() {
  if (::geteuid() != 0) return "needs root";
  if (::unshare(CLONE_NEWNET) != 0) return "cannot make a network namespace";
  const std::vector<std::vector<std::string>> commands = {
      {"ip", "link", "set", "lo", "up"},
      {"ip", "link", "add", "uplink", "type", "veth", "peer", "name", "far"},
      {"ip", "address", "add", std::string(kAddress) + "/24", "dev", "uplink"},
      {"ip", "link", "set", "uplink", "up"},
      {"ip", "link", "set", "far", "up"},
      {"ip", "route", "add", "default", "via", "192.0.2.254"}};
  for (const std::vector<std::string>& command : commands) {
    const apiserver::Output done = apiserver::RunProgram(command);
    if (done.code != 0) return Join(command, " ") + ": " + done.err;
  }
  return "";
}

Machine::Machine(const std::string& name) : name_(name) {
  char directory[] = "/tmp/keelson-nodectl-XXXXXX";
  root_ = ::mkdtemp(directory);
  if (!MakeDirs(Path("/units")) || !MakeDirs(Path("/bin"))) std::abort();
  if (::symlink(KEELSON_NODECTL_SYSTEMCTL, Path("/bin/systemctl").c_str()) != 0) std::abort();
  for (const char* program : {"kube-proxy", "kube-cni"}) {
    AddProgram(Path("/bin"), program, "echo " + std::string(program) + " \"$*\" >>" + Path("/programs.log"));
  }
}

Machine::~Machine() {
  for (const char* unit : {"kubelet", "kube-controlplane"}) {
    const pid_t pid = UnitPid(unit);
    if (pid > 0) ::kill(pid, SIGTERM);
  }
  // Who is orphaned is waited for by pid 1, not here.
  for (const char* unit : {"kubelet", "kube-controlplane"}) Eventually([&] { return UnitPid(unit) < 0; });
  if (!RemoveTree(root_)) std::fprintf(stderr, "%s stays\n", root_.c_str());
}

std::string Machine::Text(const std::string& path) const { return ReadFile(Path(path)).value_or(""); }
bool Machine::Has(const std::string& path) const { return PathExists(Path(path)); }

void Machine::AddUnit(const std::string& unit, const std::string& program) const {
  if (!WriteFile(Path("/units/" + unit), program)) std::abort();
}

pid_t Machine::UnitPid(const std::string& unit) const {
  const std::string text = Text("/units/." + unit + ".pid");
  const pid_t pid = text.empty() ? -1 : static_cast<pid_t>(std::atoi(text.c_str()));
  if (pid <= 0 || ::kill(pid, 0) != 0) return -1;
  // A process that has ended and that nobody has waited for is none.
  const std::string state = ReadFile("/proc/" + std::to_string(pid) + "/stat").value_or("");
  const size_t name_end = state.rfind(')');
  return name_end == std::string::npos || state.substr(name_end).starts_with(") Z") ? -1 : pid;
}

std::vector<std::string> Machine::CommandLine(const std::string& program,
                                              std::vector<std::string> arguments) const {
  const char* path = std::getenv("PATH");
  std::vector<std::string> out = {"env", "PATH=" + Path("/bin") + ":" + (path ? path : "/usr/bin:/bin"),
                                  "KEELSON_TEST_ROOT=" + root_,
                                  std::string("KEELSON_SYSTEMD=") + KEELSON_SYSTEMD_FILES, program};
  out.insert(out.end(), arguments.begin(), arguments.end());
  return out;
}

apiserver::Output Machine::Systemctl(std::vector<std::string> arguments) const {
  return apiserver::RunProgram(CommandLine("systemctl", std::move(arguments)), "", std::chrono::seconds(120));
}

apiserver::Output Machine::Nodectl(std::vector<std::string> arguments) const {
  return apiserver::RunProgram(CommandLine(KEELSON_NODECTL, std::move(arguments)), "",
                               std::chrono::seconds(120));
}

bool Machine::NodectlKilledAt(std::vector<std::string> arguments, const std::string& line) const {
  std::vector<std::string> command = CommandLine(KEELSON_NODECTL, std::move(arguments));
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  FILE* output = ::fdopen(ends[0], "r");
  char text[4096];
  bool seen = false;
  while (!seen && std::fgets(text, sizeof text, output)) seen = std::string_view(text).starts_with(line);
  if (seen) ::kill(pid, SIGKILL);
  std::fclose(output);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return seen && WIFSIGNALED(status);
}

apiserver::Output Machine::Kubectl(std::vector<std::string> arguments, const std::string& kubeconfig) const {
  arguments.insert(arguments.begin(), {"kubectl", "--kubeconfig", Path("/etc/kubernetes/" + kubeconfig),
                                       "--cache-dir", Path("/cache")});
  return apiserver::RunProgram(arguments);
}

}  // namespace keelson::ctl
