#include "proxy/ebpf/xdp_programs.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/bpf/fs.h"
#include "lib/netlink/xdp_features.h"
#include "proxy/ebpf/bpf/entry.bpf.h"

namespace keelson::proxy::ebpf {
namespace {

constexpr char kPrograms[] = "fast_programs";

// nullopt: the kernel does not tell.
std::optional<uint64_t> FeaturesOf(int index) {
  Result<netlink::Socket> socket = netlink::Socket::OpenGeneric();
  if (!socket) return std::nullopt;
  Result<uint64_t> features = netlink::XdpFeatures(*socket, index);
  return features ? std::optional<uint64_t>(*features) : std::nullopt;
}

}  // namespace

bool WantsXdp(const netlink::Link& link, const std::vector<std::string>& names) {
  if (link.mac == netlink::MacAddress() || names == std::vector<std::string>{"off"}) return false;
  if (names.empty() || names == std::vector<std::string>{"auto"}) return link.kind != "veth";
  return std::any_of(names.begin(), names.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), link.name.c_str(), 0) == 0;
  });
}

std::optional<dataplane::XdpDeviceEntry> XdpUse(const netlink::Link& link, std::optional<uint64_t> features) {
  const bool receives = features && (*features & netlink::kXdpReceive);
  // What a veth sends, the other end has to take as other devices' frames.
  if (link.kind == "veth" && !receives) return std::nullopt;
  if (features && !(*features & netlink::kXdpBasic)) return std::nullopt;
  dataplane::XdpDeviceEntry out{.mac = {}, .receives = receives, .zero = 0};
  std::memcpy(out.mac, link.mac.bytes().data(), sizeof out.mac);
  return out;
}

Result<bpf::Object> XdpPrograms::LoadEntry() const {
  KEELSON_RETURN_IF_ERROR(bpf::MakePinDirectory(Maps()));
  KEELSON_ASSIGN_OR_RETURN(bpf::Object object,
                           bpf::Object::Open(bpf::embedded::keelson_bpf_entry(), "keelson_fast"));
  const std::string path = Maps() + "/" + kPrograms;
  Result<bpf::Map> pinned = bpf::Map::OpenPinned(path);
  if (!pinned && !pinned.error().Is(Code::kNotFound)) return pinned.error();
  if (pinned) KEELSON_RETURN_IF_ERROR(object.Reuse(kPrograms, *pinned));
  KEELSON_RETURN_IF_ERROR(object.Load());
  if (!pinned) {
    KEELSON_ASSIGN_OR_RETURN(bpf::Map made, object.GetMap(kPrograms));
    KEELSON_RETURN_IF_ERROR(made.Pin(path));
  }
  return object;
}

Result<> XdpPrograms::EnsureLink(const bpf::Program& entry, int index, bool again) const {
  const std::string path = PathOf(index);
  Result<bpf::Link> pinned = bpf::Link::OpenPinned(path);
  if (!pinned && !pinned.error().Is(Code::kNotFound)) return pinned.error();
  if (pinned) {
    KEELSON_ASSIGN_OR_RETURN(int at, pinned->DeviceIndex());
    if (at == index) return again ? pinned->Update(entry) : Result<>();
    KEELSON_RETURN_IF_ERROR(RemoveFile(path));
  }
  KEELSON_ASSIGN_OR_RETURN(bpf::Link link, bpf::Link::AttachDriver(entry, index));
  return link.Pin(path);
}

void XdpPrograms::Tell(const netlink::Link& link, const std::string& why) {
  auto [at, first] = told_.try_emplace(link.index, why);
  if (!first && std::exchange(at->second, why) == why) return;
  if (!v4_) return;  // of IPv4 is enough: it is the same for both
  if (why.empty()) {
    log::Info("Connections that are sent on are so by the driver (XDP)", {{"device", link.name}});
  } else {
    log::Info("Connections are sent on by filters alone, without the driver's help (XDP)",
              {{"device", link.name}, {"why", why}});
  }
}

Result<std::map<int, dataplane::XdpDeviceEntry>> XdpPrograms::Attach(const bpf::Program& program,
                                                                     const std::vector<netlink::Link>& links,
                                                                     bool again) {
  again = again || !entry_;
  if (again) {
    KEELSON_ASSIGN_OR_RETURN(entry_, LoadEntry());
    KEELSON_ASSIGN_OR_RETURN(bpf::Map programs, entry_->GetMap(kPrograms));
    KEELSON_RETURN_IF_ERROR(programs.Put(ProgramIndex(), program.fd()));
  }
  KEELSON_ASSIGN_OR_RETURN(bpf::Program entry, entry_->GetProgram(dataplane::kXdpEntryProgram));
  std::map<int, dataplane::XdpDeviceEntry> out;
  for (const netlink::Link& link : links) {
    // Of a veth before: only to be of use it is changed. Others say what they can when they have a program.
    if (link.kind == "veth" && !XdpUse(link, FeaturesOf(link.index))) {
      Tell(link, "the other end of a veth takes frames with generic-receive-offload or a program of its own");
      continue;
    }
    if (Result<> linked = EnsureLink(entry, link.index, again); !linked) {
      Tell(link, linked.error().message());
      continue;
    }
    std::optional<dataplane::XdpDeviceEntry> use = XdpUse(link, FeaturesOf(link.index));
    if (use) out.emplace(link.index, *use);
    Tell(link, use ? "" : "the driver cannot send");
  }
  KEELSON_RETURN_IF_ERROR(RemoveBut(out));
  return out;
}

// Links of other interfaces, and maps of other layouts.
Result<> XdpPrograms::RemoveBut(const std::map<int, dataplane::XdpDeviceEntry>& wanted) const {
  Result<std::vector<std::string>> names = ListDir(directory_);
  if (!names && names.error().Is(Code::kNotFound)) return {};
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const std::string path = directory_ + "/" + name;
    if (name.starts_with(dataplane::kMapPinsPrefix) && path != Maps()) {
      KEELSON_RETURN_IF_ERROR(bpf::RemovePinDirectory(path));
    }
    int index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    if (error != std::errc() || *end != '\0' || wanted.contains(index)) continue;
    KEELSON_ASSIGN_OR_RETURN(bpf::Link link, bpf::Link::OpenPinned(path));
    KEELSON_RETURN_IF_ERROR(link.Detach());
    KEELSON_RETURN_IF_ERROR(RemoveFile(path));
  }
  return {};
}

Result<> XdpPrograms::Detach() {
  entry_.reset();
  told_.clear();
  Result<bpf::Map> programs = bpf::Map::OpenPinned(Maps() + "/" + kPrograms);
  if (!programs && !programs.error().Is(Code::kNotFound)) return programs.error();
  if (programs) {
    KEELSON_RETURN_IF_ERROR(programs->Delete(bpf::Map::Bytes(ProgramIndex())));
    const uint32_t other = v4_ ? dataplane::kXdpV6 : dataplane::kXdpV4;
    KEELSON_ASSIGN_OR_RETURN(std::optional<std::string> runs, programs->Lookup(bpf::Map::Bytes(other)));
    if (runs) return {};
  }
  KEELSON_RETURN_IF_ERROR(RemoveBut({}));
  return bpf::RemovePinDirectory(directory_);
}

}  // namespace keelson::proxy::ebpf
