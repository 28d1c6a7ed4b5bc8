#include "lib/dataplane/ebpf_layout.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>

namespace keelson::dataplane {
namespace {

TEST(EbpfLayout, Paths) {
  EXPECT_EQ(FamilyPins(kDefaultPinDirectory, true), "/sys/fs/bpf/keelson/v4");
  EXPECT_EQ(FamilyPins("/pins", false) + "/" + MapPins(), "/pins/v6/maps-1");
}

// What a running kube-proxy has pinned: a change of these takes another KP_LAYOUT.
TEST(EbpfLayout, MapsOfLayout1) {
  struct Case {
    const char* name;
    uint32_t type;
    size_t key_size, value_size;
  };
  constexpr Case kCases[] = {
      {"services", BPF_MAP_TYPE_HASH, 20, 12},        {"endpoints", BPF_MAP_TYPE_HASH, 24, 20},
      {"members", BPF_MAP_TYPE_HASH, 40, 1},          {"nodeport_ips", BPF_MAP_TYPE_HASH, 16, 1},
      {"affinity", BPF_MAP_TYPE_LRU_HASH, 32, 32},    {"flows", BPF_MAP_TYPE_LRU_HASH, 32, 20},
      {"settings", BPF_MAP_TYPE_ARRAY, 4, 8},         {"translations", BPF_MAP_TYPE_SK_STORAGE, 4, 40},
      {"sent", BPF_MAP_TYPE_LRU_HASH, 32, 20},        {"outside", BPF_MAP_TYPE_HASH, 20, 20},
      {"maglev", BPF_MAP_TYPE_HASH, 24, 1024},        {"source_ranges", BPF_MAP_TYPE_LPM_TRIE, 40, 1},
      {"pods", BPF_MAP_TYPE_LPM_TRIE, 20, 1},         {"outside_affinity", BPF_MAP_TYPE_LRU_HASH, 36, 32},
      {"connections", BPF_MAP_TYPE_LRU_HASH, 40, 48}, {"devices", BPF_MAP_TYPE_HASH, 4, 4},
      {"direct_devices", BPF_MAP_TYPE_HASH, 4, 20},   {"fast_devices", BPF_MAP_TYPE_HASH, 4, 8},
      {"outside_state", BPF_MAP_TYPE_ARRAY, 4, 4},
  };
  EXPECT_EQ(ServiceMaps().size(), std::size(kCases));
  for (const Case& c : kCases) {
    const MapSpec* map = FindServiceMap(c.name);
    ASSERT_TRUE(map) << c.name;
    EXPECT_EQ(map->type, c.type) << c.name;
    EXPECT_EQ(map->key_size, c.key_size) << c.name;
    EXPECT_EQ(map->value_size, c.value_size) << c.name;
  }
  EXPECT_EQ(FindServiceMap("fast_programs"), nullptr);
}

}  // namespace
}  // namespace keelson::dataplane
