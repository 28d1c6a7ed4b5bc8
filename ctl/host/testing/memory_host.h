// For tests: a machine in memory, with an init system that knows some units.
#pragma once

#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ctl/host/host.h"

namespace keelson::ctl {

class MemoryHost : public Host {
 public:
  struct File {
    std::string text;
    mode_t mode = 0;
    std::string group;
  };
  std::map<std::string, File> files;
  std::map<std::string, mode_t> directories;
  std::set<std::string> programs = {"systemctl", "kubelet", "etcd",       "losetup",
                                    "mount",     "cp",      "kube-proxy", "kube-cni"};
  std::set<std::string> units = {"kubelet", "kube-proxy", "kube-cni", "kube-controlplane"};
  std::set<std::string> active;
  std::map<std::string, int> pods;  // by the runtime's socket
  Result<RuntimeFacts> runtime = Error(Code::kNotFound, "no container runtime");
  std::vector<std::string> commands;  // that change something, as lines
  std::string kubelet_version = "Kubernetes v1.36.2\n";
  std::map<std::string, std::string> versions;  // of other programs, as --version prints them
  // Effects that still succeed; as if the program were killed before the one after them. Negative: all of them.
  int effects_left = -1;

  bool Exists(const std::string& path) const override {
    const std::string below = path + "/";
    const auto next = files.lower_bound(below);
    return files.contains(path) || directories.contains(path) ||
           (next != files.end() && next->first.starts_with(below));
  }
  Result<std::string> Read(const std::string& path) const override {
    const auto found = files.find(path);
    if (found == files.end()) return Error::FromErrno(ENOENT, "open " + path);
    return found->second.text;
  }
  Result<std::vector<std::string>> List(const std::string& directory) const override {
    std::set<std::string> names;
    const std::string below = directory + "/";
    for (const auto& [path, file] : files) {
      if (path.starts_with(below)) {
        names.insert(path.substr(below.size(), path.find('/', below.size()) - below.size()));
      }
    }
    return std::vector<std::string>(names.begin(), names.end());
  }
  Result<> Write(const std::string& path, std::string_view text, mode_t mode) override {
    KEELSON_RETURN_IF_ERROR(Effect());
    files[path] = {std::string(text), mode, ""};
    return {};
  }
  Result<> MakeDirectory(const std::string& path, mode_t mode) override {
    KEELSON_RETURN_IF_ERROR(Effect());
    if (!Exists(path)) directories[path] = mode;
    return {};
  }
  Result<> Remove(const std::string& path) override {
    KEELSON_RETURN_IF_ERROR(Effect());
    std::erase_if(files,
                  [&](const auto& one) { return one.first == path || one.first.starts_with(path + "/"); });
    directories.erase(path);
    return {};
  }
  Result<> LetGroupRead(const std::string& path, const std::string& group) override {
    KEELSON_RETURN_IF_ERROR(Effect());
    if (files.contains(path)) files[path].group = group;
    return {};
  }
  Result<> UnmountBelow(const std::string& directory) override {
    KEELSON_RETURN_IF_ERROR(Effect());
    commands.push_back("umount below " + directory);
    return {};
  }
  Result<int> RemovePods(const std::string& socket) override {
    if (!pods.contains(socket)) return Error(Code::kNotFound, "no runtime");
    KEELSON_RETURN_IF_ERROR(Effect());
    commands.push_back("remove pods at " + socket);
    return std::exchange(pods[socket], 0);
  }
  Result<RuntimeFacts> AskRuntime(const std::string&) const override { return runtime; }
  bool HasProgram(const std::string& name) const override { return programs.contains(name); }
  Result<std::string> Run(const std::vector<std::string>& command) override {
    KEELSON_RETURN_IF_ERROR(Effect());
    std::string line;
    for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
    commands.push_back(line);
    return std::string();
  }
  Result<std::string> Ask(const std::vector<std::string>& command) const override {
    if (!programs.contains(command[0])) return Error::FromErrno(ENOENT, "start " + command[0]);
    if (command[0] == "kubelet") return kubelet_version;
    if (const auto told = versions.find(command[0]); told != versions.end()) return told->second;
    if (command[0] != "systemctl" || command.size() != 3) {
      return Error(Code::kInternal, command[0] + ": exit code 1");
    }
    const std::string unit = command[2].substr(0, command[2].rfind('.'));
    const bool yes = command[1] == "is-active" ? active.contains(unit) : units.contains(unit);
    return yes ? Result<std::string>("") : Error(Code::kInternal, "systemctl: exit code 4");
  }
  std::string RealPath(const std::string& path) const override { return path; }

 private:
  Result<> Effect() {
    if (effects_left == 0) return Error(Code::kCancelled, "killed");
    if (effects_left > 0) --effects_left;
    return {};
  }
};

}  // namespace keelson::ctl
