// The compiled programs hold to what lib/dataplane says about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/bpf/object.h"
#include "lib/dataplane/ebpf_layout.h"
#include "proxy/ebpf/bpf/programs.bpf.h"
#include "proxy/ebpf/contribution.h"

namespace keelson::proxy::ebpf {
namespace {

using ::testing::UnorderedElementsAreArray;

TEST(EbpfObject, HasTheMapsOfTheLayout) {
  Result<bpf::Object> object = bpf::Object::Open(bpf::embedded::keelson_bpf_services(), "test");
  ASSERT_TRUE(object) << object.error().message();
  std::vector<std::string> names;
  for (const dataplane::MapSpec& map : dataplane::ServiceMaps()) names.push_back(map.name);
  EXPECT_THAT(object->MapNames(), UnorderedElementsAreArray(names));
  for (int id = 0; id < kMapCount; ++id) {
    EXPECT_TRUE(dataplane::FindServiceMap(MapName(static_cast<MapId>(id))))
        << MapName(static_cast<MapId>(id));
  }
}

TEST(EbpfObject, HasTheProgramsOfTheLayout) {
  Result<bpf::Object> object = bpf::Object::Open(bpf::embedded::keelson_bpf_services(), "test");
  ASSERT_TRUE(object) << object.error().message();
  std::vector<std::string> wanted = {dataplane::kIngressFilter, dataplane::kEgressFilter,
                                     dataplane::kXdpProgram};
  for (const std::string call : dataplane::kSocketCalls) {
    for (const char* family : {"4", "6"}) wanted.push_back(call + family);
  }
  std::vector<std::string> names;
  for (const bpf::Program& program : object->Programs()) names.push_back(program.name());
  EXPECT_THAT(names, UnorderedElementsAreArray(wanted));
}

}  // namespace
}  // namespace keelson::proxy::ebpf
