// Properties that must hold for objects of every kind, tested on random ones.
#include <set>

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/testing/random_object.h"

namespace keelson::api {
namespace {

std::vector<const Descriptor*> AllKinds() {
  std::set<const Descriptor*> seen;
  std::vector<const Descriptor*> kinds;
  for (const ResourceInfo& row : Resources()) {
    if (seen.insert(row.descriptor()).second) kinds.push_back(row.descriptor());
    GroupVersionKind gvk = row.Gvk();
    const Descriptor* list = FindMessage(gvk.group, gvk.version, gvk.kind + "List");
    if (list && seen.insert(list).second) kinds.push_back(list);
  }
  return kinds;
}

constexpr int kRounds = 12;

template <typename Check>
void ForRandomObjects(Check check) {
  for (const Descriptor* kind : AllKinds()) {
    for (uint32_t seed = 0; seed < kRounds; ++seed) {
      SCOPED_TRACE(kind->full_name() + " seed " + std::to_string(seed));
      std::mt19937 random(seed);
      auto object = NewObject(kind);
      FillRandom(*object, random);
      check(*object);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(CodecRoundTrip, JsonGivesTheSameObject) {
  ForRandomObjects([](const Message& object) {
    GroupVersionKind gvk = GvkOf(object.GetDescriptor());
    std::string json = EncodeJson(object, gvk);
    auto copy = NewObject(object.GetDescriptor());
    DecodeReport report;
    TypeMeta meta;
    auto done = DecodeJson(json, *copy, &report, &meta);
    ASSERT_TRUE(done) << done.error().message() << "\n" << json;
    EXPECT_TRUE(report.problems.empty()) << report.problems.front() << "\n" << json;
    ASSERT_EQ(object.DebugString(), copy->DebugString()) << json;
    ASSERT_EQ(EncodeRaw(object), EncodeRaw(*copy)) << json;
    ASSERT_EQ(json, EncodeJson(*copy, gvk));
    ASSERT_EQ(meta.kind, gvk.kind);
    ASSERT_EQ(meta.api_version, gvk.ApiVersion());
  });
}

TEST(CodecRoundTrip, JsonIsWellFormed) {
  boost::json::parse_options options;
  options.max_depth = 200;
  ForRandomObjects([&](const Message& object) {
    std::string json = EncodeJson(object);
    boost::json::error_code error;
    boost::json::parse(json, error, {}, options);
    ASSERT_FALSE(error) << json;
    boost::json::parse(PrettyJson(json), error, {}, options);
    ASSERT_FALSE(error) << PrettyJson(json);
    auto copy = NewObject(object.GetDescriptor());
    ASSERT_TRUE(DecodeJson(PrettyJson(json), *copy));
    ASSERT_EQ(json, EncodeJson(*copy));
  });
}

TEST(CodecRoundTrip, ProtobufGivesTheSameObject) {
  ForRandomObjects([](const Message& object) {
    GroupVersionKind gvk = GvkOf(object.GetDescriptor());
    std::string bytes = EncodeProtobuf(object, gvk);
    auto copy = NewObject(object.GetDescriptor());
    TypeMeta meta;
    ASSERT_TRUE(DecodeProtobuf(bytes, *copy, &meta));
    ASSERT_EQ(object.DebugString(), copy->DebugString());
    ASSERT_EQ(bytes, EncodeProtobuf(*copy, gvk));
    ASSERT_EQ(meta.kind, gvk.kind);
  });
}

TEST(CodecRoundTrip, ZerosThatGoSendsMeanNothing) {
  ForRandomObjects([](const Message& object) {
    auto noisy = NewObject(object.GetDescriptor());
    noisy->CopyFrom(object);
    AddValueZeros(*noisy);
    std::string json;
    WireToJson(object.GetDescriptor(), EncodeRaw(*noisy), nullptr, json);
    ASSERT_EQ(EncodeJson(object), json);
    auto copy = NewObject(object.GetDescriptor());
    ASSERT_TRUE(DecodeRaw(EncodeRaw(*noisy), *copy));
    ASSERT_EQ(object.DebugString(), copy->DebugString());
    Normalize(*noisy);
    ASSERT_EQ(EncodeRaw(object), EncodeRaw(*noisy));
  });
}

// Damaged input is rejected or decodes to something else, and never does harm.
TEST(CodecRoundTrip, MutatedInputIsHarmless) {
  std::mt19937 random(7);
  auto below = [&](size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random); };
  static constexpr std::string_view kBytes = "{}[]\",:\\u0e-+.nulltrue \n\x80\xff";
  ForRandomObjects([&](const Message& object) {
    auto copy = NewObject(object.GetDescriptor());
    std::string json = EncodeJson(object), raw = EncodeRaw(object);
    for (int i = 0; i < 10; ++i) {
      std::string bad = json, bytes = raw;
      for (int n = 0; n < 3; ++n) {
        size_t at = below(bad.size());
        if (below(3) == 0) bad.erase(at, below(20));
        if (bad.empty()) break;
        bad[below(bad.size())] = kBytes[below(kBytes.size())];
        if (!bytes.empty()) bytes[below(bytes.size())] = static_cast<char>(below(256));
      }
      DecodeReport report;
      if (DecodeJson(bad, *copy, &report)) {
        boost::json::error_code error;
        boost::json::parse_options options;
        options.max_depth = 200;
        boost::json::parse(EncodeJson(*copy), error, {}, options);
        ASSERT_FALSE(error) << EncodeJson(*copy);
      }
      (void)PeekTypeMeta(bad).has_value();
      (void)DecodeRaw(bytes, *copy).has_value();
      std::string out;
      WireToJson(object.GetDescriptor(), bytes, nullptr, out);
    }
  });
}

}  // namespace
}  // namespace keelson::api
