#include "ctl/host/host.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "ctl/host/pod_sandboxes.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/event/process.h"
#include "lib/linux/mount.h"

namespace keelson::ctl {
namespace {

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::optional<gid_t> GroupNamed(const std::string& name) {
  const group* found = ::getgrnam(name.c_str());
  if (!found) return std::nullopt;
  return found->gr_gid;
}

class LocalHost : public Host {
 public:
  explicit LocalHost(std::string root) : root_(std::move(root)) {
    while (root_.ends_with('/')) root_.pop_back();
  }

  std::string RealPath(const std::string& path) const override { return root_ + path; }

  bool Exists(const std::string& path) const override { return PathExists(RealPath(path)); }
  Result<std::string> Read(const std::string& path) const override { return ReadFile(RealPath(path)); }
  Result<std::vector<std::string>> List(const std::string& directory) const override {
    return ListDir(RealPath(directory));
  }
  Result<> Write(const std::string& path, std::string_view text, mode_t mode) override {
    KEELSON_RETURN_IF_ERROR(MakeDirs(RealPath(ParentOf(path))));
    return WriteFileAtomic(RealPath(path), text, mode);
  }
  Result<> MakeDirectory(const std::string& path, mode_t mode) override {
    return Exists(path) ? Result<>() : MakeDirs(RealPath(path), mode);
  }
  Result<> Remove(const std::string& path) override { return RemoveTree(RealPath(path)); }

  Result<> LetGroupRead(const std::string& path, const std::string& group) override {
    const std::optional<gid_t> id = GroupNamed(group);
    if (!id) return {};
    const std::string real = RealPath(path);
    struct stat now {};
    if (::stat(real.c_str(), &now) != 0) return ErrnoError("stat " + real);
    const mode_t bits = S_ISDIR(now.st_mode) ? 0050 : 0040;
    // The group before the mode, so that no other group may read the file meanwhile.
    if (now.st_gid != *id && ::chown(real.c_str(), static_cast<uid_t>(-1), *id) != 0) {
      return ErrnoError("chown " + real);
    }
    if ((now.st_mode & bits) != bits && ::chmod(real.c_str(), (now.st_mode & 07777) | bits) != 0) {
      return ErrnoError("chmod " + real);
    }
    return {};
  }

  Result<> UnmountBelow(const std::string& directory) override {
    KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> points,
                             linux::MountPointsUnder(RealPath(directory)));
    for (const std::string& point : points) KEELSON_RETURN_IF_ERROR(linux::Unmount(point));
    return {};
  }

  Result<int> RemovePods(const std::string& socket) override {
    if (!Exists(socket)) return Error(Code::kNotFound, "no container runtime has the socket " + socket);
    return RemovePodSandboxes(RealPath(socket));
  }

  Result<RuntimeFacts> AskRuntime(const std::string& socket) const override {
    if (!Exists(socket)) return Error(Code::kNotFound, "no container runtime has the socket " + socket);
    return AskRuntimeAt(RealPath(socket));
  }

  bool HasProgram(const std::string& name) const override {
    const char* path = std::getenv("PATH");
    for (std::string_view directory : Split(path ? path : "/usr/sbin:/usr/bin:/sbin:/bin", ':')) {
      const std::string file = (directory.empty() ? "." : std::string(directory)) + "/" + name;
      if (::access(file.c_str(), X_OK) == 0) return true;
    }
    return false;
  }
  Result<std::string> Run(const std::vector<std::string>& command) override { return Ask(command); }

  Result<std::string> Ask(const std::vector<std::string>& command) const override {
    UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
    if (!output) return ErrnoError("memfd_create");
    event::ProcessOptions options;
    options.argv = command;
    options.output_file = "/proc/self/fd/" + std::to_string(output.get());
    KEELSON_ASSIGN_OR_RETURN(event::Process process, event::Process::Start(options));
    KEELSON_ASSIGN_OR_RETURN(const event::ExitStatus status, process.Wait({}));
    if (::lseek(output.get(), 0, SEEK_SET) < 0) return ErrnoError("lseek");
    KEELSON_ASSIGN_OR_RETURN(std::string text, ReadAll(output.get(), "the output of " + command[0]));
    if (status.ok()) return text;
    const std::string said(Trim(text));
    return Error(Code::kInternal,
                 Join(command, " ") + ": " + status.ToString() + (said.empty() ? "" : ": " + said));
  }

 private:
  std::string root_;
};

}  // namespace

std::unique_ptr<Host> NewHost(std::string root) { return std::make_unique<LocalHost>(std::move(root)); }

}  // namespace keelson::ctl
