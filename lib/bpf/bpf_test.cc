// Runs against the kernel.
#include "lib/bpf/map.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "lib/base/file.h"
#include "lib/bpf/fs.h"
#include "lib/bpf/link.h"
#include "lib/bpf/object.h"
#include "lib/bpf/probe.h"
#include "lib/bpf/testing.bpf.h"
#include "lib/linux/mount.h"

namespace keelson::bpf {
namespace {

std::string_view Program1() { return embedded::keelson_bpf_test_program(); }

// Provides a BPF file system and a cgroup.
class BpfTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char directory[] = "/tmp/keelson-bpf-XXXXXX";
    ASSERT_NE(::mkdtemp(directory), nullptr);
    root_ = directory;
    Result<> mounted = linux::MountFilesystem("bpf", root_, "bpf", 0, "");
    if (!mounted) GTEST_SKIP() << mounted.error().message();
  }
  void TearDown() override {
    (void)linux::Unmount(root_, true);
    (void)RemoveTree(root_);
  }

  Object Load(uint32_t entries = 16) {
    auto object = Object::Open(Program1(), "test");
    EXPECT_TRUE(object) << object.error().message();
    EXPECT_TRUE(object->SetMaxEntries("words", entries));
    auto loaded = object->Load();
    EXPECT_TRUE(loaded) << loaded.error().message();
    return std::move(*object);
  }
  std::string root_;
};

uint32_t Word(const char (&text)[5]) {
  uint32_t out;
  std::memcpy(&out, text, sizeof out);
  return out;
}

TEST_F(BpfTest, MapsTakeAndGiveAndFillUp) {
  Object object = Load(10000);
  auto map = object.GetMap("words");
  ASSERT_TRUE(map) << map.error().message();
  std::vector<Map::Entry> entries;
  for (uint32_t i = 0; i < 10000; ++i) {
    uint32_t twice = 2 * i;
    entries.emplace_back(std::string(Map::Bytes(i)), std::string(Map::Bytes(twice)));
  }
  auto written = map->UpdateAll(entries);
  ASSERT_TRUE(written) << written.error().message();
  auto found = map->Dump();
  ASSERT_TRUE(found) << found.error().message();
  std::sort(found->begin(), found->end());
  std::vector<Map::Entry> sorted = entries;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(*found, sorted);
  auto value = map->Get<uint32_t, uint32_t>(77);
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 154u);

  EXPECT_EQ(map->Put(uint32_t{10000}, uint32_t{1}).error().errnum(), E2BIG);
  EXPECT_TRUE(map->DeleteAll({entries[0].first, entries[1].first, entries[1].first}));
  EXPECT_EQ(map->Dump()->size(), 9998u);
  EXPECT_FALSE((map->Get<uint32_t, uint32_t>(1)->has_value()));
  EXPECT_EQ(map->Update("abc", "defg").error().code(), Code::kInternal);
  EXPECT_EQ((map->Get<uint32_t, uint64_t>(77).error().code()), Code::kInternal);
}

TEST_F(BpfTest, ProgramsRunOnPackets) {
  Object object = Load();
  ASSERT_TRUE(object.GetMap("words")->Put(Word("abcd"), Word("wxyz")));
  auto find = object.GetProgram("find");
  ASSERT_TRUE(find);
  auto hit = find->TestRun("abcdefghijklmnop");
  ASSERT_TRUE(hit) << hit.error().message();
  EXPECT_EQ(hit->result, 1u);
  EXPECT_EQ(hit->packet, "wxyzefghijklmnop");
  auto miss = find->TestRun("bbcdefghijklmnop");
  ASSERT_TRUE(miss);
  EXPECT_EQ(miss->result, 0u);
  EXPECT_EQ(object.GetProgram("nothing").error().code(), Code::kInternal);
}

TEST_F(BpfTest, ConstantsAreSetBeforeLoading) {
  auto object = Object::Open(Program1(), "test");
  ASSERT_TRUE(object);
  ASSERT_TRUE(object->SetConstant("answer", Map::Bytes(uint32_t{5})));
  EXPECT_FALSE(object->SetConstant("answer", "x"));
  EXPECT_FALSE(object->SetConstant("question", Map::Bytes(uint32_t{5})));
  ASSERT_TRUE(object->Load());
  ASSERT_TRUE(object->GetMap("words")->Put(Word("abcd"), Word("abcd")));
  EXPECT_EQ(object->GetProgram("find")->TestRun("abcdefghijklmnop")->result, 5u);
}

TEST_F(BpfTest, PinnedMapsAreTakenOver) {
  {
    Object object = Load();
    ASSERT_TRUE(object.GetMap("words")->Put(Word("abcd"), Word("wxyz")));
    ASSERT_TRUE(object.GetMap("words")->Pin(root_ + "/words"));
    EXPECT_EQ(object.GetMap("words")->Pin(root_ + "/words").error().errnum(), EEXIST);
  }
  auto pinned = Map::OpenPinned(root_ + "/words");
  ASSERT_TRUE(pinned) << pinned.error().message();
  auto object = Object::Open(Program1(), "test");
  ASSERT_TRUE(object->Reuse("words", *pinned));
  ASSERT_TRUE(object->Load());
  EXPECT_EQ(object->GetProgram("find")->TestRun("abcdefghijklmnop")->packet, "wxyzefghijklmnop");
  EXPECT_EQ(Map::OpenPinned(root_ + "/others").error().code(), Code::kNotFound);
}

TEST_F(BpfTest, LinksStayAndTheirProgramIsExchanged) {
  const std::string cgroup = "/sys/fs/cgroup/unified/keelson-bpf-test";
  Result<> made = MakeDirs(cgroup);
  auto directory = OpenFile(cgroup, O_RDONLY | O_DIRECTORY);
  if (!made || !directory) GTEST_SKIP() << "no cgroup2 at /sys/fs/cgroup/unified";
  struct stat status {};
  ASSERT_EQ(::fstat(directory->get(), &status), 0);
  {
    Object object = Load();
    auto link = Link::AttachCgroup(*object.GetProgram("connect4"), directory->get());
    ASSERT_TRUE(link) << link.error().message();
    ASSERT_TRUE(link->Pin(root_ + "/link"));
  }
  auto link = Link::OpenPinned(root_ + "/link");
  ASSERT_TRUE(link) << link.error().message();
  EXPECT_EQ(*link->CgroupId(), status.st_ino);
  Object other = Load();
  EXPECT_TRUE(link->Update(*other.GetProgram("connect4")));
  EXPECT_FALSE(link->Update(*other.GetProgram("find"))) << "a program of another kind";
  EXPECT_TRUE(RemovePinDirectory(root_ + "/link"));
  directory->Reset();
  EXPECT_EQ(::rmdir(cgroup.c_str()), 0);
}

TEST_F(BpfTest, RefusedProgramsComeWithTheVerifiersWords) {
  auto object = Object::Open(Program1(), "test");
  ASSERT_TRUE(object);
  ASSERT_TRUE(object->SetMaxEntries("words", 0));  // no hash may have none
  auto loaded = object->Load();
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message(), ::testing::HasSubstr("load BPF object test"));
  EXPECT_THAT(object->log(), ::testing::HasSubstr("words"));
  EXPECT_EQ(Object::Open("no elf file", "bad").error().message().find("open BPF object bad"), 0u);
}

TEST_F(BpfTest, PinDirectoriesAreOnBpfFileSystemsOnly) {
  EXPECT_TRUE(MakePinDirectory(root_ + "/a/b"));
  EXPECT_TRUE(PathExists(root_ + "/a/b"));
  EXPECT_TRUE(RemovePinDirectory(root_ + "/a"));
  EXPECT_FALSE(PathExists(root_ + "/a"));
  for (const char* elsewhere : {"/tmp/keelson-no-bpffs", "relative", ""}) {
    EXPECT_EQ(MakePinDirectory(elsewhere).error().code(), Code::kInvalid) << elsewhere;
    EXPECT_TRUE(RemovePinDirectory(elsewhere)) << elsewhere;
  }
}

TEST_F(BpfTest, ProbesNameWhatIsMissing) {
  EXPECT_TRUE(RequireMapType(BPF_MAP_TYPE_LRU_HASH, "LRU_HASH", "4.10"));
  EXPECT_TRUE(RequireCgroupLink(BPF_CGROUP_INET4_GETPEERNAME, "getpeername", "5.8"));
  Result<> helper = RequireHelper(BPF_PROG_TYPE_XDP, BPF_FUNC_sk_storage_get, "sk_storage_get", "9.9");
  ASSERT_FALSE(helper);
  EXPECT_EQ(helper.error().message(),
            "this kernel lacks BPF helper sk_storage_get, which Linux has since 9.9");
  EXPECT_FALSE(RequireMapType(12345, "OF_NO_KIND", "9.9"));
}

}  // namespace
}  // namespace keelson::bpf
