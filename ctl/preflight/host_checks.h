// Internal to this room: single checks.
#pragma once

#include <cstdint>

#include "ctl/preflight/check.h"

namespace keelson::ctl {

Check CpuCheck(unsigned least);
Check MemoryCheck(uint64_t least_mb);
Check PortCheck(uint16_t port);
Check FirewallCheck(std::vector<uint16_t> ports);
Check FileAvailableCheck(const std::string& path);
Check DirectoryAvailableCheck(const std::string& path);
Check FileExistsCheck(const std::string& path, const std::string& name);
Check FileContentCheck(const std::string& path, const std::string& content);
Check ProgramCheck(const std::string& program);
Check UnitCheck(const std::string& unit);
Check UserCheck(const std::string& user);
Check RuntimeCheck(const std::string& cri_socket);
// A warning that names the fix: pods do not start, or are not accounted for, though the runtime answers.
Check RuntimeConfigCheck(const std::string& cri_socket, const std::string& cgroup_driver, bool kube_cni);
// Of other network plugins' files, which the runtime takes before kube-cni's where their names come first.
Check CniConfigCheck();
Check SwapCheck();
Check CgroupCheck();
Check HostNameCheck(const std::string& name);
Check KubeletVersionCheck();

}  // namespace keelson::ctl
