// Parsers for cgroup files. Internal to lib/linux.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace keelson::linux {

// nullopt: no such file, or not a number ("max").
std::optional<uint64_t> ReadNumber(const std::string& path);
// Files of "key value" lines: memory.stat, cpu.stat. Empty: no such file.
std::map<std::string, uint64_t> ReadTable(const std::string& path);
std::optional<uint64_t> Find(const std::map<std::string, uint64_t>& table, const std::string& key);

}  // namespace keelson::linux
