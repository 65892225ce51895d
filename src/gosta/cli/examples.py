"""Examples in the help of the commands: those that begin with the command."""

EXAMPLES = """
gosta run
gosta run --live --open
gosta run iris --statistic gini-mean-difference --graph torus --protocol gosta-async,gosta-sync,u2
gosta run wine-quality-red --statistic within-cluster-scatter --graph torus --iterations 200000 --runs 50 --out wine.nc
gosta run --resume wine.nc --iterations 400000
gosta run --protocol gosta-sync,u2 --log --bound
gosta run --protocol carried-means,tracking,gosta-async
gosta run --nodes 20 --protocol tracking,gosta-async
gosta run --nodes 20 --interval 95%
gosta run --nodes 20 --report run.html
gosta run --log --animate run.gif
gosta run --nodes 20 --by 'mean radius' --until 1%
gosta run --loss 10% --away 5% --away-for 50
gosta run --graph cycle,random-regular@20000 --partition 5000-15000
gosta run --by 'mean radius' --homophily 0.8
gosta exact breast-cancer --statistic auc --interval 95%
gosta exact patients.csv --statistic auc --score risk --label died
gosta exact incomes.parquet --statistic gini-index --columns income --json
gosta exact table.csv --statistic kendall-tau --columns a,b --option variant=b
gosta exact patients.csv --statistic auc:risk,kendall-tau:age+risk --label died --positive yes --interval 95%
gosta exact patients.csv --statistic auc --score risk --label died --by hospital
gosta exact survey.csv --statistic gini-index --columns income --weights weight --interval 95%
gosta exact hospitals/ --statistic auc --score risk --label died --by file
gosta exact marks.csv --statistic variance --columns mark --sep ';' --decimal , --encoding latin-1 --header yes
gosta exact points.npy --statistic mine.py:huber-scatter
gosta exact patients.csv --statistic auc --score risk --label died --bins 256 --strata sex,ward
gosta exact patients.csv --statistic roc-curve --score risk --label died --plot roc.png
gosta exact patients.csv --statistic auc --score risk --label died --by sex --plot forest.pdf
gosta test patients.csv --statistic auc --columns old-risk,new-risk --label died
gosta test patients.csv --statistic auc --score risk --label died --by sex
gosta test patients.csv --statistic mann-whitney --score risk --label died --alternative greater
gosta test patients.csv --statistic log-rank --columns time,event --label treatment
gosta test table.csv --statistic distance-correlation --columns a,b --permutations 9999 --seed 1
gosta fit patients.csv --outcome died --columns age,sex,stage
gosta fit patients.csv --model cox --time days --event died --columns age,sex --strata hospital
gosta fit patients.csv --model linear --formula 'score ~ age * sex' --robust
gosta fit patients.csv --formula 'died ~ bs(age, df=4) + stage' --levels stage=II,I,III
gosta fit patients.csv --outcome died --penalty 1 --plot forest.pdf
gosta fit patients.csv --outcome died --columns age,sex --out model.json
gosta fit --private my-network --robust
gosta predict others.csv --model model.json --out scored.csv
gosta predict hospital/ --model cox.json --time 365 --name risk --out scored.csv
gosta statistics --for patients.csv
gosta statistics --for patients.xlsx --label died --json
gosta graph watts-strogatz --n 1599
gosta graph geometric --n 300 --plot network.png
gosta graph erdos-renyi --n 100000 --seed 7 --json
gosta graph friends.csv
gosta theory
gosta theory breast-cancer --statistic auc --graph torus --n 560 --protocol gosta-async
gosta theory wine-quality-red --statistic within-cluster-scatter --graph watts-strogatz --protocol u2 --plot u2.pdf
gosta study init my-study/ --data patients.csv --label died --score risk --group sex
gosta study init my-study/ --data patients.csv --score new,old --time years --event died --yes
gosta study check my-study/
gosta study run my-study/ --data a.csv --data b.csv --data c.csv
gosta study collect my-study/ my-network/
gosta study collect my-study/ site-a/
gosta sweep sweep.toml
gosta sweep sweep.toml --workers 4 --out results --plot sweep.pdf
gosta sweep sweep.toml --backend dask --scheduler tcp://head:8786
gosta sweep sweep.toml --backend ray --scheduler auto
gosta report my-study/
gosta report my-study/ --out report.pdf
gosta reproduce
gosta reproduce figure3a --runs 10
gosta reproduce figure2 figure4 --data breast-cancer --out stand-in
gosta node run my-network/node-3/
gosta node run /srv/gosta 2>> node.jsonl
gosta node request invitation.json site-a/ --name site-a --address a.example:7400 --data rows.csv
gosta node request invitation.json site-b/ --name site-b --address outbound --data rows.csv
gosta node request invitation.json site-a/ --new-key
gosta node join bundle.json site-a/
gosta node accept site-a/
gosta node leave site-a/
gosta node leave site-a/ --back
gosta check my-network/node-3
gosta check my-network/node-3 --report check.txt
gosta status my-network/node-3
gosta status my-network/
gosta status my-network/ --json
gosta watch my-network/
gosta watch my-network/node-3 --address 127.0.0.1:8000
gosta audit my-network/node-3
gosta audit my-network/node-3 --rows
gosta replay my-network/
gosta network init my-network/ --data breast-cancer
gosta network init my-network/ --data patients.csv --statistic auc --score risk --label died --nodes 20 --deal even
gosta network init my-network/ --statistic auc --score risk --label diagnosis --classes benign,malignant --nodes 5
gosta network init my-network/ --data breast-cancer --nodes 3 --host a.example --host outbound --host outbound
gosta network init my-network/ --statistic auc --score risk --label died --classes 0,1 --enrol --passphrase
gosta network init my-network/ --private --score risk --label died --classes 0,1 --range risk=0:1 --bins 256 --nodes 5
gosta network init my-network/ --private --epsilon 1 --delta 1e-6 --data patients.csv --score risk --label died
gosta network init my-network/ --private --statistic gini-index --columns income --range income=0:99999 --strata sex=f,m
gosta network init my-network/ --study my-study/ --enrol
gosta network init my-network/ --fit logistic --outcome died --columns age,sex --classes no,yes --range age=0:120 --levels sex=F,M
gosta network up my-network/
gosta network up my-network/ --page
gosta network up my-network/ --until 1%
gosta network up my-network/ --for 60 --json
gosta network down my-network/
gosta network epoch my-network/
gosta network epoch my-network/node-3
gosta network verify my-network/
gosta network add my-network/
gosta network add my-network/ --data rows.csv --neighbours node-1,node-2
gosta network remove my-network/ node-3
gosta network remove my-network/ node-3 --delete
gosta network agree my-network/ node-3
gosta network agree site-a/ site-b site-c
gosta network certify my-network/
gosta network certify my-network/ node-3
gosta network sign my-network/ site-a.json site-b.json site-c.json
gosta network sign my-network/ site-a.json --certificate site-a.pem
gosta network sign my-network/
gosta network rotate-authority my-network/
"""
SWEEP = r"""[bold]A sweep[/bold] is a file of lists; every combination is a job:
data = ["breast-cancer", "wine"]
statistic = "gini-mean-difference"
graph = \["complete", "watts-strogatz"]
protocol = \["gosta-async", "gosta-sync", "u2"]
n = \[100, 150]
seeds = 5
"""


def epilog(command: str) -> str:
    """Return the text below the options, a paragraph for each line."""
    examples = [line for line in EXAMPLES.splitlines() if f"{line} ".startswith(f"{command} ")]
    heading = ["[bold]Examples[/bold]"] if examples else []
    return "\n\n".join([*SWEEP.splitlines() * (command == "gosta sweep"), *heading, *examples])
