#include "cni/lib/delegate.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstring>

#include "cni/lib/json.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::cni {
namespace {

Outcome<std::string> FindPlugin(const std::string& type, const std::string& path) {
  if (type.find('/') != std::string::npos) {
    return CniError{kInvalidConfig, "invalid plugin name: " + type, ""};
  }
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find(':', begin), path.size());
    std::string candidate = path.substr(begin, end - begin) + "/" + type;
    if (end > begin && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return CniError{kInvalidConfig, "failed to find plugin \"" + type + "\" in path [" + path + "]", ""};
}

// A file in memory rather than a pipe: no deadlock, however large the configuration is.
Result<UniqueFd> FileWith(const std::string& text) {
  UniqueFd fd(::memfd_create("cni-config", MFD_CLOEXEC));
  if (!fd) return ErrnoError("make memory file");
  KEELSON_RETURN_IF_ERROR(WriteAll(fd.get(), text, "memory file"));
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return ErrnoError("rewind memory file");
  return fd;
}

// The environment with another CNI_COMMAND.
std::vector<std::string> EnvironmentFor(const std::string& command, const Request& request) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry; ++entry) {
    if (std::strncmp(*entry, "CNI_", 4) != 0) out.emplace_back(*entry);
  }
  out.push_back("CNI_COMMAND=" + command);
  out.push_back("CNI_CONTAINERID=" + request.container_id);
  out.push_back("CNI_NETNS=" + request.netns);
  out.push_back("CNI_IFNAME=" + request.ifname);
  out.push_back("CNI_PATH=" + request.path);
  std::string args;
  for (const auto& [name, value] : request.args) args += (args.empty() ? "" : ";") + name + "=" + value;
  out.push_back("CNI_ARGS=" + args);
  return out;
}

struct Process {
  pid_t pid;
  UniqueFd output;
};

Result<Process> Start(std::string program, const std::string& command, const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd input, FileWith(request.config_text));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError("make pipe");
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  std::vector<std::string> variables = EnvironmentFor(command, request);
  std::vector<char*> pointers;
  for (std::string& variable : variables) pointers.push_back(variable.data());
  pointers.push_back(nullptr);
  char* argv[] = {program.data(), nullptr};
  pid_t pid = 0;
  int failed = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, argv, pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Error::FromErrno(failed, "start " + program);
  return Process{pid, std::move(read_end)};
}

Outcome<std::string> Execute(const std::string& program, const std::string& type, const std::string& command,
                             const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(Process process, Start(program, command, request));
  Result<std::string> output = ReadAll(process.output.get(), type + "'s output");
  int status = 0;
  while (::waitpid(process.pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoError("wait for " + type);
  }
  if (!output) return output.error();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::move(*output);
  Outcome<boost::json::object> error = ParseJson(*output, type + "'s error");
  if (!error) return CniError{kInternalFailure, type + " failed without an error: " + *output, ""};
  CniError out{kInternalFailure, "", ""};
  KEELSON_ASSIGN_OR_RETURN(out.code, GetInt(*error, "code", kInternalFailure));
  KEELSON_ASSIGN_OR_RETURN(out.message, GetString(*error, "msg"));
  KEELSON_ASSIGN_OR_RETURN(out.details, GetString(*error, "details"));
  return out;
}

// The plugin inside this program, if `program` is this one.
const Plugin* Sibling(const std::string& program, const std::string& type, const Request& request) {
  if (!request.siblings) return nullptr;
  auto found = request.siblings->find(type);
  struct stat mine, other;
  if (found == request.siblings->end() || ::stat("/proc/self/exe", &mine) != 0 ||
      ::stat(program.c_str(), &other) != 0 || mine.st_ino != other.st_ino || mine.st_dev != other.st_dev) {
    return nullptr;
  }
  return &found->second;
}

}  // namespace

Outcome<AddResult> DelegateAdd(const std::string& type, const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(std::string program, FindPlugin(type, request.path));
  if (const Plugin* plugin = Sibling(program, type, request)) return plugin->add(request);
  KEELSON_ASSIGN_OR_RETURN(std::string output, Execute(program, type, "ADD", request));
  KEELSON_ASSIGN_OR_RETURN(boost::json::object json, ParseJson(output, type + "'s result"));
  return ParseResult(json);
}

Outcome<> Delegate(const std::string& type, const std::string& command, const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(std::string program, FindPlugin(type, request.path));
  if (const Plugin* plugin = Sibling(program, type, request)) {
    if (command == "DEL") return plugin->del(request);
    if (command == "CHECK") return plugin->check(request);
    const auto& verb = command == "GC" ? plugin->gc : plugin->status;
    return verb ? verb(request) : Outcome<>();
  }
  KEELSON_ASSIGN_OR_RETURN(std::string ignored, Execute(program, type, command, request));
  return {};
}

}  // namespace keelson::cni
