#include "controlplane/controllers/ttlafterfinished/controller.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;
using api::batch::v1::Job;

const WallTime kEnd{std::chrono::seconds(1'800'000'000)};

Job JobNamed(const std::string& name, std::optional<int> ttl, const std::string& condition = "",
             WallTime end = kEnd) {
  Job job;
  job.mutable_metadata()->set_name(name);
  job.mutable_metadata()->set_namespace_("default");
  if (ttl) job.mutable_spec()->set_ttl_seconds_after_finished(*ttl);
  if (!condition.empty()) {
    auto& added = *job.mutable_status()->add_conditions();
    added.set_type(condition);
    added.set_status("True");
    *added.mutable_last_transition_time() = api::ToTime(end);
  }
  return job;
}

TEST(ExpiryTest, OfJobsThatHaveEnded) {
  Job deleted = JobNamed("a", 10, "Complete"), timeless = deleted, undone = deleted;
  *deleted.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(kEnd);
  timeless.mutable_status()->mutable_conditions(0)->clear_last_transition_time();
  undone.mutable_status()->mutable_conditions(0)->set_status("False");
  const struct {
    const char* what;
    Job job;
    std::optional<WallTime> expiry;
  } cases[] = {
      {"running", JobNamed("a", 10), std::nullopt},
      {"no limit", JobNamed("a", std::nullopt, "Complete"), std::nullopt},
      {"complete", JobNamed("a", 10, "Complete"), kEnd + 10s},
      {"failed", JobNamed("a", 10, "Failed"), kEnd + 10s},
      {"at once", JobNamed("a", 0, "Complete"), kEnd},
      {"suspended", JobNamed("a", 10, "Suspended"), std::nullopt},
      {"on its way to failure", JobNamed("a", 10, "FailureTarget"), std::nullopt},
      {"condition is False", undone, std::nullopt},
      {"on its way out", deleted, std::nullopt},
  };
  for (const auto& c : cases) {
    Result<std::optional<WallTime>> expiry = ExpiryOf(c.job);
    ASSERT_TRUE(expiry) << c.what;
    EXPECT_EQ(*expiry, c.expiry) << c.what;
  }
  EXPECT_EQ(ExpiryOf(timeless).error().message(), "unable to find the time when the Job default/a finished");
}

class TtlTest : public ::testing::Test {
 protected:
  void Start(const Job& job) {
    cluster_.fake->Put(job);
    cluster_.Start();
    cluster_.Drain({&controller_});
  }
  // Those that are not on their way out.
  long Jobs() {
    const std::vector<Job> jobs = cluster_.List<Job>();
    return std::count_if(jobs.begin(), jobs.end(),
                         [](const Job& job) { return !job.metadata().has_deletion_timestamp(); });
  }

  TestCluster cluster_;
  TtlAfterFinishedController& controller_ = cluster_.Make<TtlAfterFinishedController>();
};

TEST_F(TtlTest, JobsGoWhenTheirTimeHasCome) {
  Start(JobNamed("a", 30, "Complete", cluster_.clock.Now()));
  EXPECT_EQ(Jobs(), 1);
  cluster_.Advance(29s, {&controller_});
  EXPECT_EQ(Jobs(), 1);
  cluster_.Advance(1s, {&controller_});
  EXPECT_EQ(Jobs(), 0);
  EXPECT_TRUE(cluster_.errors.empty());
}

TEST_F(TtlTest, AJobThatEndsLaterIsSeen) {
  Start(JobNamed("a", 0));
  EXPECT_EQ(Jobs(), 1);
  cluster_.fake->Put(JobNamed("a", 0, "Failed", cluster_.clock.Now()));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Jobs(), 0);
}

// The informer is behind: what the server says counts.
TEST_F(TtlTest, TheServersLimitCounts) {
  Start(JobNamed("a", 30, "Complete", cluster_.clock.Now()));
  auto longer = std::make_shared<Job>(cluster_.Get<Job>("default", "a"));
  longer->mutable_spec()->set_ttl_seconds_after_finished(300);
  cluster_.fake->SetInterceptor(
      [longer](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method != "GET" || !request.target.ends_with("/jobs/a")) return std::nullopt;
        return client::FakeApi::Answer(*longer);
      });
  cluster_.Advance(60s, {&controller_});
  EXPECT_EQ(Jobs(), 1);
  cluster_.Advance(240s, {&controller_});
  EXPECT_EQ(Jobs(), 0);
}

}  // namespace
}  // namespace keelson::controllers
