#include "proxy/ebpf/datapath.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <map>

#include "lib/base/file.h"
#include "lib/bpf/fs.h"
#include "lib/bpf/link.h"
#include "lib/bpf/probe.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/dataplane/ebpf_maps.h"
#include "lib/linux/mount.h"
#include "lib/linux/netns.h"
#include "proxy/ebpf/bpf/programs.bpf.h"
#include "proxy/ebpf/external_connections.h"
#include "proxy/ebpf/map_sizes.h"

namespace keelson::proxy::ebpf {
namespace {

constexpr char kVerifierLog[] = "/run/keelson-proxy-ebpf.log";
constexpr uint32_t kProgramType = BPF_PROG_TYPE_CGROUP_SOCK_ADDR;
constexpr MapId kGrowing[] = {kEndpoints, kMembers, kMaglev, kSourceRanges, kServices, kExternalServices};

// Of a directory with links and directories of maps.
Result<> DetachLinks(const std::string& directory) {
  Result<std::vector<std::string>> names = ListDir(directory);
  if (!names && names.error().Is(Code::kNotFound)) return {};
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (name.starts_with(dataplane::kMapPinsPrefix)) continue;
    KEELSON_ASSIGN_OR_RETURN(bpf::Link link, bpf::Link::OpenPinned(directory + "/" + name));
    KEELSON_RETURN_IF_ERROR(link.Detach());
    KEELSON_RETURN_IF_ERROR(RemoveFile(directory + "/" + name));
  }
  return {};
}

Result<> RemoveFamily(const std::string& directory) {
  KEELSON_RETURN_IF_ERROR(DetachLinks(directory));
  return bpf::RemovePinDirectory(directory);
}

// What remembers clients, and how many.
std::map<std::string, uint32_t> ClientMaps(const MapSizes& map_sizes) {
  // An entry takes some 150 bytes.
  const uint32_t sockets = MapSizeFor(map_sizes.udp_sockets, 1 << 20, 1 << 13, 1 << 17);
  return {{"affinity", MapSizeFor(map_sizes.affinity_clients, 512 << 10, 1 << 14, 1 << 18)},
          {"flows", sockets},
          {"sent", sockets}};
}

Result<> CarryOver(const bpf::Map& from, const bpf::Map& to) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<bpf::Map::Entry> entries, from.Dump());
  entries.resize(std::min<size_t>(entries.size(), to.shape().max_entries));
  return to.UpdateAll(entries);
}

bool IsForSockets(const bpf::Program& program) {
  const std::string& name = program.name();
  return name != dataplane::kIngressFilter && name != dataplane::kEgressFilter &&
         name != dataplane::kXdpProgram;
}

}  // namespace

Result<std::string> CgroupRoot() {
  KEELSON_ASSIGN_OR_RETURN(std::vector<linux::MountInfo> mounts, linux::ListMounts());
  for (const linux::MountInfo& mount : mounts) {
    if (mount.fs_type == "cgroup2") return mount.mount_point;
  }
  return Error(Code::kNotFound, "no cgroup2 file system is mounted");
}

Result<> Datapath::Check() {
  KEELSON_RETURN_IF_ERROR(bpf::RequireMapType(BPF_MAP_TYPE_SK_STORAGE, "SK_STORAGE", "5.2"));
  KEELSON_RETURN_IF_ERROR(bpf::RequireCgroupLink(BPF_CGROUP_INET4_GETPEERNAME, "getpeername()", "5.8"));
  KEELSON_RETURN_IF_ERROR(
      bpf::RequireHelper(kProgramType, BPF_FUNC_get_netns_cookie, "bpf_get_netns_cookie", "5.7"));
  KEELSON_RETURN_IF_ERROR(
      bpf::RequireHelper(kProgramType, BPF_FUNC_sk_storage_get, "bpf_sk_storage_get", "5.9"));
  KEELSON_RETURN_IF_ERROR(linux::NetnsCookie());
  return {};
}

std::string Datapath::MapDirectory() const { return Directory() + "/" + dataplane::MapPins(); }

Result<Datapath::Written> Datapath::Write(Plan& plan) {
  if (in_step_) {
    in_step_ = false;  // unless it succeeds: the plan has handed its changes out
    Changes changes = plan.TakeChanges();
    Result<> applied = Apply(changes);
    if (applied && programs_stale_) applied = Attach(false);
    if (applied && devices_stale_) applied = AttachDevices(false);
    if (applied) {
      in_step_ = true;
      return Written{.entries = changes.size()};
    }
  }
  Result<size_t> compared = Compare(plan);
  ::malloc_trim(0);  // what was compared is large and seldom needed
  KEELSON_ASSIGN_OR_RETURN(size_t entries, compared);
  in_step_ = true;
  return Written{.entries = entries, .compared = true};
}

Result<size_t> Datapath::Compare(Plan& plan) {
  KEELSON_RETURN_IF_ERROR(Open(plan));
  plan.StartOver();
  Changes changes;
  for (int id = 0; id < kMapCount; ++id) {
    KEELSON_ASSIGN_OR_RETURN(std::vector<bpf::Map::Entry> found, maps_[id]->Dump());
    changes.maps[id] = plan.Difference(static_cast<MapId>(id), found);
  }
  KEELSON_RETURN_IF_ERROR(Apply(changes));
  KEELSON_RETURN_IF_ERROR(Pin());
  KEELSON_RETURN_IF_ERROR(Attach(true));
  KEELSON_RETURN_IF_ERROR(AttachDevices(true));
  return changes.size();
}

// What a program finds is whole at every moment: see MapId.
Result<> Datapath::Apply(const Changes& changes) {
  for (int id = 0; id < kMapCount; ++id) {
    if (!changes.maps[id].put.empty()) KEELSON_RETURN_IF_ERROR(maps_[id]->UpdateAll(changes.maps[id].put));
  }
  for (int id = kMapCount - 1; id >= 0; --id) {
    KEELSON_RETURN_IF_ERROR(maps_[id]->DeleteAll(changes.maps[id].gone));
  }
  return {};
}

// Loads the programs, over the maps that are pinned where these are large enough.
Result<> Datapath::Open(const Plan& plan) {
  KEELSON_ASSIGN_OR_RETURN(bpf::Object object,
                           bpf::Object::Open(bpf::embedded::keelson_bpf_services(), "keelson_proxy"));
  for (MapId id : kGrowing) {
    const size_t wanted = std::max<size_t>(options_.least_entries, 2 * plan.Size(id));
    KEELSON_RETURN_IF_ERROR(object.SetMaxEntries(MapName(id), static_cast<uint32_t>(std::bit_ceil(wanted))));
  }
  const std::map<std::string, uint32_t> client_maps = ClientMaps(options_.map_sizes);
  for (const auto& [name, entries] : client_maps) {
    KEELSON_RETURN_IF_ERROR(object.SetMaxEntries(name, entries));
  }
  KEELSON_RETURN_IF_ERROR(object.SetMaxEntries("connections", ConnectionMapSize(options_.connections)));
  KEELSON_RETURN_IF_ERROR(object.SetConstant(
      "has_set_retval", bpf::Map::Bytes(uint8_t{bpf::HasHelper(kProgramType, BPF_FUNC_set_retval)})));
  KEELSON_RETURN_IF_ERROR(object.SetConstant("serves_v4", bpf::Map::Bytes(uint8_t{v4_})));
  KEELSON_RETURN_IF_ERROR(object.SetConstant("serves_dsr", bpf::Map::Bytes(uint8_t{options_.dsr})));
  KEELSON_RETURN_IF_ERROR(object.SetConstant("masquerade_mark", bpf::Map::Bytes(options_.masquerade_mark)));
  KEELSON_RETURN_IF_ERROR(bpf::MakePinDirectory(MapDirectory()));
  std::map<std::string, bpf::Map> replaced;
  for (const std::string& name : object.MapNames()) {
    Result<bpf::Map> pinned = bpf::Map::OpenPinned(MapDirectory() + "/" + name);
    if (!pinned && pinned.error().Is(Code::kNotFound)) continue;
    if (!pinned) return pinned.error();
    if (auto room = client_maps.find(name);
        room != client_maps.end() && pinned->shape().max_entries != room->second) {
      replaced.emplace(name, std::move(*pinned));
      continue;
    }
    const bool too_small = std::any_of(std::begin(kGrowing), std::end(kGrowing), [&](MapId id) {
      return name == MapName(id) && pinned->shape().max_entries < plan.Size(id);
    });
    if (!too_small) KEELSON_RETURN_IF_ERROR(object.Reuse(name, *pinned));
  }
  if (Result<> loaded = object.Load(); !loaded) {
    (void)WriteFile(kVerifierLog, object.log());
    return loaded.error().Wrap(std::string("all that the kernel says is in ") + kVerifierLog);
  }
  for (const auto& [name, old] : replaced) {
    KEELSON_ASSIGN_OR_RETURN(bpf::Map fresh, object.GetMap(name));
    KEELSON_RETURN_IF_ERROR(CarryOver(old, fresh));
  }
  for (int id = 0; id < kMapCount; ++id) {
    KEELSON_ASSIGN_OR_RETURN(bpf::Map map, object.GetMap(MapName(static_cast<MapId>(id))));
    maps_[id] = std::move(map);
  }
  KEELSON_ASSIGN_OR_RETURN(bpf::Map settings, object.GetMap("settings"));
  KEELSON_RETURN_IF_ERROR(
      settings.Put(uint32_t{0}, dataplane::NodeSettings{.node_netns = options_.node_netns}));
  KEELSON_ASSIGN_OR_RETURN(bpf::Map state, object.GetMap("outside_state"));
  KEELSON_RETURN_IF_ERROR(state.Put(uint32_t{0}, dataplane::ExternalState{.draining = 0}));
  object_ = std::make_unique<bpf::Object>(std::move(object));
  return {};
}

// A kill in between leaves a map unpinned, which the next process makes anew.
Result<> Datapath::Pin() {
  for (const std::string& name : object_->MapNames()) {
    const std::string path = MapDirectory() + "/" + name;
    KEELSON_ASSIGN_OR_RETURN(bpf::Map map, object_->GetMap(name));
    Result<> pinned = map.Pin(path + dataplane::kNewPinSuffix);
    if (!pinned && pinned.error().errnum() == EEXIST) {
      KEELSON_RETURN_IF_ERROR(RemoveFile(path + dataplane::kNewPinSuffix));
      pinned = map.Pin(path + dataplane::kNewPinSuffix);
    }
    KEELSON_RETURN_IF_ERROR(pinned);
    if (::rename((path + dataplane::kNewPinSuffix).c_str(), path.c_str()) != 0) {
      return ErrnoError("rename " + path);
    }
  }
  return {};
}

Result<> Datapath::Attach(bool anew) {
  programs_stale_ = false;
  std::string directory = options_.cgroup;
  if (directory.empty()) {
    KEELSON_ASSIGN_OR_RETURN(directory, CgroupRoot());
  }
  KEELSON_ASSIGN_OR_RETURN(UniqueFd cgroup, OpenFile(directory, O_RDONLY | O_DIRECTORY));
  struct stat status {};
  if (::fstat(cgroup.get(), &status) != 0) return ErrnoError("stat " + directory);
  for (const bpf::Program& program : object_->Programs()) {
    if (!IsForSockets(program) || (!v4_ && program.name().ends_with("4"))) continue;
    KEELSON_RETURN_IF_ERROR(AttachOne(program, cgroup.get(), status.st_ino, anew));
  }
  if (!anew) return {};
  // Maps of another layout have no readers any more.
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(Directory()));
  for (const std::string& name : names) {
    const std::string path = Directory() + "/" + name;
    if (name.starts_with(dataplane::kMapPinsPrefix) && path != MapDirectory()) {
      KEELSON_RETURN_IF_ERROR(bpf::RemovePinDirectory(path));
    }
  }
  return {};
}

Result<> Datapath::AttachOne(const bpf::Program& program, int cgroup, uint64_t cgroup_id, bool anew) {
  const std::string path = Directory() + "/" + program.name();
  Result<bpf::Link> pinned = bpf::Link::OpenPinned(path);
  if (!pinned && !pinned.error().Is(Code::kNotFound)) return pinned.error();
  if (pinned) {
    KEELSON_ASSIGN_OR_RETURN(uint64_t at, pinned->CgroupId());
    if (at == cgroup_id) return anew ? pinned->Update(program) : Result<>();
  }
  // Attached twice does no harm: what an endpoint's address has become is no Service's.
  KEELSON_ASSIGN_OR_RETURN(bpf::Link link, bpf::Link::AttachCgroup(program, cgroup));
  if (pinned) KEELSON_RETURN_IF_ERROR(pinned->Detach());
  KEELSON_RETURN_IF_ERROR(RemoveFile(path));
  return link.Pin(path);
}

Result<> Datapath::AttachDevices(bool anew) {
  devices_stale_ = false;
  if (!devices_) return {};
  DevicePrograms all;
  KEELSON_ASSIGN_OR_RETURN(all.ingress, object_->GetProgram(dataplane::kIngressFilter));
  KEELSON_ASSIGN_OR_RETURN(all.egress, object_->GetProgram(dataplane::kEgressFilter));
  KEELSON_ASSIGN_OR_RETURN(all.xdp, object_->GetProgram(dataplane::kXdpProgram));
  KEELSON_ASSIGN_OR_RETURN(bpf::Map devices, object_->GetMap("devices"));
  KEELSON_ASSIGN_OR_RETURN(bpf::Map direct, object_->GetMap("direct_devices"));
  KEELSON_ASSIGN_OR_RETURN(bpf::Map xdp, object_->GetMap("fast_devices"));
  return devices_->Attach(
      all, {.devices = std::move(devices), .direct = std::move(direct), .xdp = std::move(xdp)}, anew);
}

Result<bool> Datapath::Retire() {
  in_step_ = false;
  KEELSON_RETURN_IF_ERROR(DetachLinks(Directory()));
  KEELSON_ASSIGN_OR_RETURN(bool connected, DrainExternal(MapDirectory()));
  if (connected) return false;
  KEELSON_RETURN_IF_ERROR(Remove());
  return true;
}

Result<> Datapath::Remove() {
  in_step_ = false;
  if (devices_) KEELSON_RETURN_IF_ERROR(devices_->Detach());
  KEELSON_RETURN_IF_ERROR(RemoveFamily(Directory()));
  for (auto& map : maps_) map.reset();
  object_.reset();
  return {};
}

Result<> Datapath::RemoveAll(const std::string& pin_directory) {
  for (const char* part : {dataplane::kPinsV4, dataplane::kPinsV6, dataplane::kPinsXdp}) {
    KEELSON_RETURN_IF_ERROR(RemoveFamily(pin_directory + part));
  }
  (void)::rmdir(pin_directory.c_str());  // unless somebody has mounted it, or keeps something there
  return RemoveFile(kVerifierLog);
}

}  // namespace keelson::proxy::ebpf
