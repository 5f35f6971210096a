"""What a build will take, told from what builds took here: history, forecast, and how good forecasts were."""
