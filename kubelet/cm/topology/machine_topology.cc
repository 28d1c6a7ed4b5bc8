#include "kubelet/cm/topology/machine_topology.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

constexpr size_t kMaxNodes = 8;  // upstream's limit as well: sets of nodes are 2^n

std::vector<std::string> NamesIn(const std::string& directory) {
  auto names = ListDir(directory);
  return names ? *names : std::vector<std::string>();
}

int NumberIn(const std::string& path, int otherwise) {
  auto text = ReadFile(path);
  int out = otherwise;
  if (text) std::from_chars(text->data(), text->data() + text->size(), out);
  return out;
}

CpuSet ListIn(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return {};
  return CpuSet::Parse(*text).value_or(CpuSet());
}

// The lowest CPU that shares the last level of cache.
int CacheOf(const std::string& cpu_directory, int cpu) {
  int level = -1;
  CpuSet shared{cpu};
  for (const std::string& name : NamesIn(cpu_directory + "/cache")) {
    if (name.compare(0, 5, "index") != 0) continue;
    std::string directory = cpu_directory + "/cache/" + name;
    int found = NumberIn(directory + "/level", -1);
    if (found <= level) continue;
    CpuSet sharing = ListIn(directory + "/shared_cpu_list");
    if (sharing.empty()) continue;
    level = found;
    shared = std::move(sharing);
  }
  return *shared.begin();
}

// "Node 0 MemTotal:       16303560 kB"
int64_t MemoryIn(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return 0;
  size_t at = text->find("MemTotal:");
  if (at == std::string::npos) return 0;
  return std::strtoll(text->c_str() + at + sizeof("MemTotal:") - 1, nullptr, 10) * 1024;
}

// hugepages-2048kB -> hugepages-2Mi
std::string ResourceOf(int64_t kilobytes) {
  if (kilobytes % (1 << 20) == 0) return "hugepages-" + std::to_string(kilobytes >> 20) + "Gi";
  if (kilobytes % (1 << 10) == 0) return "hugepages-" + std::to_string(kilobytes >> 10) + "Mi";
  return "hugepages-" + std::to_string(kilobytes) + "Ki";
}

NumaNode ReadNode(const std::string& directory) {
  NumaNode out;
  out.cpus = ListIn(directory + "/cpulist");
  out.memory_bytes = MemoryIn(directory + "/meminfo");
  for (const std::string& name : NamesIn(directory + "/hugepages")) {
    constexpr std::string_view kPrefix = "hugepages-";
    if (name.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    int64_t kilobytes = std::strtoll(name.c_str() + kPrefix.size(), nullptr, 10);
    int64_t count = NumberIn(directory + "/hugepages/" + name + "/nr_hugepages", 0);
    if (kilobytes > 0) out.huge_pages[ResourceOf(kilobytes)] = count * kilobytes * 1024;
  }
  if (auto distances = ReadFile(directory + "/distance")) {
    std::istringstream in(*distances);
    int index = 0;  // of the online nodes in ascending order; ids come once all are known
    for (int distance = 0; in >> distance; ++index) out.distance[index] = distance;
  }
  return out;
}

}  // namespace

Result<MachineTopology> MachineTopology::Read(int64_t memory_bytes, const std::string& root) {
  MachineTopology out;
  CpuSet online = ListIn(root + "/cpu/online");
  if (online.empty()) return Error(Code::kUnavailable, "no CPUs in " + root + "/cpu/online");
  for (int cpu : online) {
    std::string directory = root + "/cpu/cpu" + std::to_string(cpu);
    CpuPlace place;
    place.socket = std::max(NumberIn(directory + "/topology/physical_package_id", 0), 0);
    CpuSet siblings = ListIn(directory + "/topology/thread_siblings_list");
    place.core = siblings.empty() ? cpu : *siblings.begin();
    place.cache = CacheOf(directory, cpu);
    out.cpus[cpu] = place;
  }
  for (const std::string& name : NamesIn(root + "/node")) {
    int id = 0;
    if (name.compare(0, 4, "node") != 0) continue;
    auto [end, problem] = std::from_chars(name.data() + 4, name.data() + name.size(), id);
    if (problem != std::errc() || end != name.data() + name.size()) continue;
    NumaNode node = ReadNode(root + "/node/" + name);
    node.cpus = node.cpus.Intersection(online);
    for (int cpu : node.cpus) out.cpus[cpu].numa = id;
    out.nodes[id] = std::move(node);
  }
  std::vector<int> ids;
  for (const auto& [id, node] : out.nodes) ids.push_back(id);
  for (auto& [id, node] : out.nodes) {
    std::map<int, int> by_id;
    for (auto [index, distance] : node.distance) {
      if (static_cast<size_t>(index) < ids.size()) by_id[ids[index]] = distance;
    }
    node.distance = std::move(by_id);
  }
  if (out.nodes.empty()) out.nodes[0] = {online, memory_bytes, {}, {{0, 10}}};
  return out;
}

CpuSet MachineTopology::All() const {
  CpuSet out;
  for (const auto& [cpu, place] : cpus) out.Add(cpu);
  return out;
}

std::set<int> MachineTopology::Ids(int CpuPlace::*level, const CpuSet& among) const {
  std::set<int> out;
  for (int cpu : among) {
    if (auto it = cpus.find(cpu); it != cpus.end()) out.insert(it->second.*level);
  }
  return out;
}

int MachineTopology::Sockets() const { return static_cast<int>(Ids(&CpuPlace::socket, All()).size()); }
int MachineTopology::Cores() const { return static_cast<int>(Ids(&CpuPlace::core, All()).size()); }

CpuSet MachineTopology::Of(int CpuPlace::*level, int id) const {
  CpuSet out;
  for (const auto& [cpu, place] : cpus) {
    if (place.*level == id) out.Add(cpu);
  }
  return out;
}

CpuSet MachineTopology::OfNodes(const NumaMask& mask) const {
  CpuSet out;
  for (const auto& [cpu, place] : cpus) {
    if (place.numa >= 0 && static_cast<size_t>(place.numa) < mask.size() && mask.test(place.numa)) {
      out.Add(cpu);
    }
  }
  return out;
}

std::vector<NumaMask> MachineTopology::NodeSets() const {
  std::vector<int> ids;
  for (const auto& [id, node] : nodes) {
    if (static_cast<size_t>(id) < NumaMask().size() && ids.size() < kMaxNodes) ids.push_back(id);
  }
  std::vector<NumaMask> out;
  for (unsigned chosen = 1; chosen < 1u << ids.size(); ++chosen) {
    NumaMask mask;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (chosen >> i & 1) mask.set(ids[i]);
    }
    out.push_back(mask);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.count() < b.count(); });
  return out;
}

}  // namespace keelson::kubelet
