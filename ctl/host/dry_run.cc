#include <fmt/format.h>

#include "ctl/host/host.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

class DryRunHost : public Host {
 public:
  DryRunHost(const Host& real, std::ostream& out) : real_(real), out_(out) {}

  bool Exists(const std::string& path) const override {
    return written_.contains(path) || real_.Exists(path);
  }
  Result<std::string> Read(const std::string& path) const override {
    const auto written = written_.find(path);
    if (written != written_.end()) return written->second;
    return real_.Read(path);
  }
  Result<std::vector<std::string>> List(const std::string& directory) const override {
    return real_.List(directory);
  }
  Result<> Write(const std::string& path, std::string_view text, mode_t mode) override {
    // Keys stay out of terminals and logs.
    out_ << fmt::format("[dryrun] Would write file \"{}\" with mode {:04o}\n", path, mode);
    written_[path] = text;
    return {};
  }
  Result<> MakeDirectory(const std::string& path, mode_t mode) override {
    if (!Exists(path)) {
      out_ << fmt::format("[dryrun] Would make directory \"{}\" with mode {:04o}\n", path, mode);
    }
    return {};
  }
  Result<> Remove(const std::string& path) override {
    if (real_.Exists(path)) out_ << "[dryrun] Would remove \"" << path << "\"\n";
    written_.erase(path);
    return {};
  }
  Result<> LetGroupRead(const std::string&, const std::string&) override { return {}; }
  Result<> UnmountBelow(const std::string& directory) override {
    out_ << "[dryrun] Would unmount mounted directories in \"" << directory << "\"\n";
    return {};
  }

  Result<int> RemovePods(const std::string& socket) override {
    if (!real_.Exists(socket)) return Error(Code::kNotFound, "no container runtime has the socket " + socket);
    out_ << "[dryrun] Would remove all pods of the runtime at \"" << socket << "\"\n";
    return 0;
  }

  Result<RuntimeFacts> AskRuntime(const std::string& socket) const override {
    return real_.AskRuntime(socket);
  }

  bool HasProgram(const std::string& name) const override { return real_.HasProgram(name); }
  Result<std::string> Run(const std::vector<std::string>& command) override {
    out_ << "[dryrun] Would run \"" << Join(command, " ") << "\"\n";
    return std::string();
  }
  Result<std::string> Ask(const std::vector<std::string>& command) const override {
    return real_.Ask(command);
  }
  std::string RealPath(const std::string& path) const override { return real_.RealPath(path); }

 private:
  const Host& real_;
  std::ostream& out_;
  std::map<std::string, std::string> written_;
};

}  // namespace

std::unique_ptr<Host> NewDryRunHost(const Host& real, std::ostream& out) {
  return std::make_unique<DryRunHost>(real, out);
}

}  // namespace keelson::ctl
