// Readers of the files that cgroups have. Internal to lib/linux.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace keelson::linux {

// nullopt: no such file, or no number ("max").
std::optional<uint64_t> ReadNumber(const std::string& path);
// "key value" lines: memory.stat, cpu.stat. Empty: no such file.
std::map<std::string, uint64_t> ReadTable(const std::string& path);
std::optional<uint64_t> Find(const std::map<std::string, uint64_t>& table, const std::string& key);

}  // namespace keelson::linux
