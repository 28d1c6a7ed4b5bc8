// The machine that verbs such as init and join set up, as far as they read and change it. A verb plans without it and
// changes the machine through it alone, so that a dry run and tests stand in its place.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/host/runtime_facts.h"
#include "lib/base/error.h"

namespace keelson::ctl {

class Host {
 public:
  virtual ~Host() = default;

  // ---- files, by absolute paths ----

  virtual bool Exists(const std::string& path) const = 0;
  virtual Result<std::string> Read(const std::string& path) const = 0;
  virtual Result<std::vector<std::string>> List(const std::string& directory) const = 0;  // sorted
  // Replaces the file so that a kill at any moment leaves the old or the new one, and makes missing directories (0755).
  virtual Result<> Write(const std::string& path, std::string_view text, mode_t mode) = 0;
  virtual Result<> MakeDirectory(const std::string& path, mode_t mode) = 0;  // an existing one keeps its mode
  virtual Result<> Remove(const std::string& path) = 0;  // with what is below; absent is fine
  // Gives the file to the group, which may read it (a directory: and search it). No change where the host has no such
  // group.
  virtual Result<> LetGroupRead(const std::string& path, const std::string& group) = 0;
  virtual Result<> UnmountBelow(const std::string& directory) = 0;  // the directory's own mount too

  // ---- programs ----

  virtual bool HasProgram(const std::string& name) const = 0;  // in PATH
  // Runs a program to its end; what it prints on both outputs. kNotFound: it is not in PATH. kInternal: it has failed;
  // the message contains what it printed.
  virtual Result<std::string> Run(const std::vector<std::string>& command) = 0;
  // The same for a program that only looks: a dry run runs it too.
  virtual Result<std::string> Ask(const std::vector<std::string>& command) const = 0;

  // ---- pods ----

  // Stops and removes all pods of the runtime at this socket; returns how many. kNotFound: there is no such socket.
  virtual Result<int> RemovePods(const std::string& socket) = 0;

  // kNotFound: there is no such socket; otherwise as AskRuntimeAt().
  virtual Result<RuntimeFacts> AskRuntime(const std::string& socket) const = 0;

  // The path that another library opens: `path` below the root.
  virtual std::string RealPath(const std::string& path) const = 0;
};

// This machine. `root` (--rootfs) is put before every path of a file; empty: the machine's own root.
std::unique_ptr<Host> NewHost(std::string root);

// Changes nothing and says on `out` what it would do. What it would have written can be read back. `real` outlives it.
std::unique_ptr<Host> NewDryRunHost(const Host& real, std::ostream& out);

}  // namespace keelson::ctl
