// For tests: machines below directories of their own, which share the test's network namespace.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/base/testing/eventually.h"
#include "tests/apiserver/cluster.h"

namespace keelson::ctl {

// Puts the calling process into a network namespace of its own with the address 192.0.2.1. Empty: done; else what is
// missing on this machine.
std::string EnterNetwork();
inline constexpr char kAddress[] = "192.0.2.1";

// A directory that stands for the root of a machine with systemd (systemctl.sh). Ends its units' processes with it.
class Machine {
 public:
  explicit Machine(const std::string& name);
  ~Machine();

  const std::string& name() const { return name_; }
  std::string Path(const std::string& path) const { return root_ + path; }
  std::string Text(const std::string& path) const;
  bool Has(const std::string& path) const;
  // A unit that exists; with a program it really runs.
  void AddUnit(const std::string& unit, const std::string& program = "") const;
  std::string SystemctlLog() const { return Text("/systemctl.log"); }
  std::string UnitLog(const std::string& unit) const { return Text("/units/." + unit + ".log"); }
  pid_t UnitPid(const std::string& unit) const;  // -1: it does not run

  apiserver::Output Systemctl(std::vector<std::string> arguments) const;

  // nodectl on this machine; --rootfs is among the arguments.
  apiserver::Output Nodectl(std::vector<std::string> arguments) const;
  // The same, killed by SIGKILL when a line of its output begins with `line`. False: it ended before, or no such line came.
  bool NodectlKilledAt(std::vector<std::string> arguments, const std::string& line) const;
  apiserver::Output Kubectl(std::vector<std::string> arguments,
                            const std::string& kubeconfig = "admin.conf") const;

 private:
  std::vector<std::string> CommandLine(const std::string& program, std::vector<std::string> arguments) const;

  const std::string name_;
  std::string root_;
};

}  // namespace keelson::ctl
