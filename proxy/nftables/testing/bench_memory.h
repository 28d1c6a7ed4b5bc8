// For benchmarks: what the kernel holds in memory, and whether others disturb.
#pragma once

#include <linux/netfilter/nfnetlink.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace keelson::proxy::nftables {

// The number after `name` in a file of "Name:   number kB" lines, in MiB.
inline double Mebibytes(const char* path, const std::string& name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / 1024;
  }
  return 0;
}

// What the whole machine's kernel holds: of use on a quiet machine, and for large tables.
inline double KernelMemory() {
  return Mebibytes("/proc/meminfo", "Slab") + Mebibytes("/proc/meminfo", "VmallocUsed");
}

// Once what earlier namespaces held has been given back: the kernel takes its time, in threads of its own.
inline double SettledKernelMemory() {
  double last = KernelMemory();
  for (int tries = 0; tries < 100; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    double now = KernelMemory();
    if (std::abs(now - last) < 0.2) return now;
    last = now;
  }
  return last;
}

// Whether any process has nf_tables told to it. Then the kernel makes a message of each element, in whatever
// network namespace, and most of the time of a full sync is that.
inline bool SomebodyListens() {
  constexpr char kNetfilter[] = "12";
  constexpr unsigned long kNftablesGroup = 1ul << (NFNLGRP_NFTABLES - 1);
  std::error_code ignored;
  for (const auto& process : std::filesystem::directory_iterator("/proc", ignored)) {
    std::ifstream in(process.path() / "net/netlink");
    std::string line, socket, protocol, port, groups;
    while (std::getline(in, line)) {
      if (std::istringstream(line) >> socket >> protocol >> port >> groups && protocol == kNetfilter &&
          (std::stoul(groups, nullptr, 16) & kNftablesGroup)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace keelson::proxy::nftables
